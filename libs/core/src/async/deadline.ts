/** A bound on how long something may take. */

import { DeadlineError } from "../errors.ts";
import type { WaitOptions } from "./delay.ts";
import { allowedMs } from "./patience.ts";

/**
 * Runs `work` with a signal that aborts after `ms` milliseconds or with the caller's signal, and settles by then
 * even if `work` does not listen.
 * @param what named in the error, such as "the answer of dataset".
 * @throws {DeadlineError} when the time is over.
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
