/** Trying again, with growing pauses. */

import { RetryableError } from "../errors.ts";
import { delay, type WaitOptions } from "./delay.ts";

/** Options of {@link retry}. */
export interface RetryOptions extends WaitOptions {
  /** Most calls made in all. @default Infinity */
  readonly maxAttempts?: number;
  /** First pause; doubles each time. @default 50 */
  readonly minDelayMs?: number;
  /** Longest pause. @default 2_000 */
  readonly maxDelayMs?: number;
  /** Which failures are worth another try. @default instances of RetryableError */
  readonly isRetryable?: (error: unknown) => boolean;
  /** Told before each pause. */
  readonly onRetry?: (error: unknown, attempt: number) => void;
}

/**
 * Calls `work` until it succeeds, fails for good, runs out of attempts or the signal aborts.
 * @throws the last failure, or the reason of the signal.
 */
export async function retry<T>(
  work: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
): Promise<T> {
  const {
    maxAttempts = Number.POSITIVE_INFINITY,
    minDelayMs = 50,
    maxDelayMs = 2_000,
    isRetryable = (error) => error instanceof RetryableError,
    onRetry,
    signal,
  } = options;
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error) || signal?.aborted) throw error;
      onRetry?.(error, attempt);
      await delay(Math.min(maxDelayMs, minDelayMs * 2 ** Math.min(attempt - 1, 20)), { signal });
    }
  }
}
