/** Runs database work with a time limit, typed errors and, if asked for, repeated attempts. */

import { DeadlineError, deadline, retry } from "@hone/core";
import type { ConnectionPool } from "./connection-pool.ts";
import {
  DatabaseClosedError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  translateDatabaseError,
} from "./errors.ts";

/** The server's answer to a statement that reached its timeout may arrive this much later. */
export const ANSWER_MARGIN_MS = 5_000;
const MIN_RETRY_PAUSE_MS = 10;
/** Short, so that a server that is reachable again is found quickly. */
const MAX_RETRY_PAUSE_MS = 1_000;

export interface BoundedOptions {
  /** Names the work in error messages. */
  readonly action: string;
  /** Time limit of all attempts together. */
  readonly deadlineMs: number;
  /** Which typed errors lead to another attempt. @default none */
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
    // The server would have ended the statement earlier, so the connection or the network to the server is broken.
    pool.renew(generation);
    throw lastError ?? new DatabaseTimeoutError(action, { cause: error });
  }
}

function translate(error: unknown, action: string, pool: ConnectionPool): unknown {
  const typed = translateDatabaseError(error, action);
  // A replaced generation also reports "ended"; only the pool knows whether it was closed.
  if (typed instanceof DatabaseClosedError && !pool.isClosed) {
    return new DatabaseUnavailableError(action, { cause: error });
  }
  return typed;
}
