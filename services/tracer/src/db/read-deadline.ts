/** A reader of the page waits meanwhile, and gets a clear error rather than a late answer. */
export const READ_DEADLINE_MS = 5_000;
