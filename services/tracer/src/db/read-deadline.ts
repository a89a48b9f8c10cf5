/** Somebody looks at a page that waits: better a clear error soon than an answer late. */
export const READ_DEADLINE_MS = 5_000;
