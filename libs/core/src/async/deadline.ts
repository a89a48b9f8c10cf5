/** A limit on how long something may take. */

import { DeadlineError } from "../errors.ts";
import type { WaitOptions } from "./delay.ts";
import { allowedMs } from "./extend-deadlines.ts";

/**
 * Runs `work` with a signal that aborts after `ms` milliseconds or when the caller's signal aborts. The promise settles
 * at that moment even if `work` ignores its signal.
 * @param what names the awaited result in the error, such as "the answer of dataset".
 * @throws {DeadlineError} when `work` takes longer than `ms`.
 */
export async function deadline<T>(
  what: string,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
  options: WaitOptions = {},
): Promise<T> {
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    reject(reason);
    controller.abort(reason);
  };
  const onAbort = () => end(options.signal?.reason);
  const timer = setTimeout(() => end(new DeadlineError(what, ms)), allowedMs(ms));
  options.signal?.addEventListener("abort", onAbort, { once: true });
  if (options.signal?.aborted) onAbort();
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
  }
}
