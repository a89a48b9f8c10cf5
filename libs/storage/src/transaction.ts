/** Transactions, which can be repeated after a conflict with a concurrent one. */

import { ANSWER_MARGIN_MS, bounded } from "./bounded.ts";
import type { Database } from "./database.ts";
import { isClosedConnection, SerializationError } from "./errors.ts";
import type { Queryable } from "./queryable.ts";

export interface TransactionOptions {
  /** Names the transaction in error messages, such as "commit step 12". @default "run a transaction" */
  readonly action?: string | undefined;
  /** @default "read committed" */
  readonly isolation?: "read committed" | "repeatable read" | "serializable" | undefined;
  /**
   * Largest number of attempts after conflicts with concurrent transactions (serialization failure, deadlock). `work` runs
   * again each time, so it must do only database work. @default 1
   */
  readonly maxAttempts?: number | undefined;
  /** Time limit of all attempts together. @default the statement timeout and five seconds, per attempt */
  readonly deadlineMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work` in one transaction: committed when it resolves, rolled back when it throws.
 * @throws what `work` throws, or the errors of `errors.ts`. After DatabaseUnavailableError and DatabaseTimeoutError
 *   the commit may have taken effect: check before repeating.
 * @example
 * await transaction(database, async (tx) => {
 *   await tx.insert(ledger).values(rows);
 *   await tx.update(runs).set({ version }).where(eq(runs.id, runId));
 * }, { action: "commit a step" });
 */
export async function transaction<T>(
  database: Database,
  work: (tx: Queryable) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { action = "run a transaction", isolation = "read committed", maxAttempts = 1 } = options;
  let attempts = 0;
  const once = () => {
    attempts++;
    return database.pool.queries.transaction((tx) => withoutRollbackOfClosed(work(tx)), {
      isolationLevel: isolation,
    });
  };
  return bounded(database.pool, once, {
    action,
    deadlineMs: options.deadlineMs ?? (database.statementTimeoutMs + ANSWER_MARGIN_MS) * maxAttempts,
    isRetryable: (error) => error instanceof SerializationError && attempts < maxAttempts,
    signal: options.signal,
  });
}

/**
 * postgres.js 3.4.9 rolls a failed transaction back even on a closed connection: it then writes to a socket that it has
 * dropped, in a callback, and the error ends the process. So this hides such a failure from the driver, which rejects the
 * transaction itself once it has handled the close.
 */
function withoutRollbackOfClosed<T>(working: Promise<T>): Promise<T> {
  return working.catch((error: unknown) => {
    if (isClosedConnection(error)) return new Promise<never>(() => undefined);
    throw error;
  });
}
