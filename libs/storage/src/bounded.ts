/** Database work with a bound, typed errors, and another try where asked. */

import { DeadlineError, deadline, retry } from "@hone/core";
import type { ConnectionPool } from "./connection-pool.ts";
import {
  DatabaseClosedError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  translateDatabaseError,
} from "./errors.ts";

/** What the server ends by its statement timeout is answered a little later. */
export const ANSWER_MARGIN_MS = 5_000;
const MIN_RETRY_PAUSE_MS = 10;
/** So that a server that comes back is found quickly. */
const MAX_RETRY_PAUSE_MS = 1_000;

export interface BoundedOptions {
  /** What is tried, for error messages. */
  readonly action: string;
  /** For all tries together. */
  readonly deadlineMs: number;
  /** Which typed errors are worth another try. @default none */
  readonly isRetryable?: (error: unknown) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work` on the pool.
 * @throws the errors of `errors.ts`, what `work` throws, or the reason of the signal.
 */
export async function bounded<T>(
  pool: ConnectionPool,
  work: () => Promise<T>,
  options: BoundedOptions,
): Promise<T> {
  const { action, deadlineMs, isRetryable = () => false } = options;
  let generation = pool.driver;
  let lastError: unknown;
  const attempt = async () => {
    generation = pool.driver;
    try {
      return await work();
    } catch (error) {
      const typed = translate(error, action, pool);
      if (typed instanceof DatabaseUnavailableError) pool.renew(generation);
      throw typed;
    }
  };
  try {
    return await deadline(
      `the database to ${action}`,
      deadlineMs,
      (signal) =>
        retry(attempt, {
          signal,
          isRetryable,
          minDelayMs: MIN_RETRY_PAUSE_MS,
          maxDelayMs: MAX_RETRY_PAUSE_MS,
          onRetry: (error) => {
            lastError = error;
          },
        }),
      { signal: options.signal },
    );
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    // The server ends statements earlier: silence means that the connection is dead, or the whole path to the server.
    pool.renew(generation);
    throw lastError ?? new DatabaseTimeoutError(action, { cause: error });
  }
}

function translate(error: unknown, action: string, pool: ConnectionPool): unknown {
  const typed = translateDatabaseError(error, action);
  // A generation that was replaced says "ended" too; only the pool knows whether that is for good.
  if (typed instanceof DatabaseClosedError && !pool.isClosed) {
    return new DatabaseUnavailableError(action, { cause: error });
  }
  return typed;
}
