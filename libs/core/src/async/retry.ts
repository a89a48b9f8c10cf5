/** Repeated attempts with growing pauses between them. */

import { RetryableError } from "../errors.ts";
import { delay, type WaitOptions } from "./delay.ts";

/** Options of {@link retry}. */
export interface RetryOptions extends WaitOptions {
  /** Largest number of calls, the first one included. @default Infinity */
  readonly maxAttempts?: number;
  /** First pause in milliseconds; each further one is twice as long. @default 50 */
  readonly minDelayMs?: number;
  /** Longest pause in milliseconds. @default 2_000 */
  readonly maxDelayMs?: number;
  /** Which failures are worth another try. @default instances of RetryableError */
  readonly isRetryable?: (error: unknown) => boolean;
  /** Called before each pause. */
  readonly onRetry?: (error: unknown, attempt: number) => void;
}

/**
 * Calls `work` until it succeeds, fails with an error that is not retryable, has no attempts left, or the signal aborts.
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
