/** Waiting for a promise until a signal aborts. */

/**
 * Settles as `promise` does, or rejects with the reason of `signal` when it aborts first. The listener is removed
 * either way. The promise itself goes on after an abort; if it rejects then, that counts as handled.
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
