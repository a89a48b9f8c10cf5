/** Joining a promise with a signal. */

/**
 * Settles as `promise` does, or rejects with the reason of `signal` when it aborts first. The listener is removed
 * either way. What the promise does after an abort is its owner's concern; a late rejection is not reported twice.
 */
export async function raceAbortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
  }
}
