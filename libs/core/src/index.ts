/** Errors, async helpers, ids, seeds and time. Depends on nothing. */
export {};
