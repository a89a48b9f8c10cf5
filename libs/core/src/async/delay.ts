/** A pause that an AbortSignal can end. */

/** Options of every function that waits. */
export interface WaitOptions {
  /** Ends the wait at once; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves after `ms` milliseconds.
 * @throws the reason of `signal` when it aborts first.
 */
export function delay(ms: number, options: WaitOptions = {}): Promise<void> {
  const { signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
