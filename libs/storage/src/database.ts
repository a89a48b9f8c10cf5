/**
 * The connection pool of a service.
 *
 * D1: each service uses its own PostgreSQL schema. It is the search path of every connection, so tables are named without it,
 *     and one server can hold several services or tests.
 * D2: everything has a time limit: connecting, statements (on the server), answers (here) and locks.
 * D3: the next query replaces a lost connection (connection-pool.ts); the pool itself never gives up.
 */

import { describeError, InvalidInputError } from "@hone/core";
import { type Logger, redactText, silentLogger } from "@hone/telemetry";
import postgres from "postgres";
import { ANSWER_MARGIN_MS, bounded } from "./bounded.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { DatabaseUnavailableError } from "./errors.ts";
import type { Queryable } from "./queryable.ts";

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** The service's schema, which migrations create. Lower-case letters, digits and `_`. */
  readonly schema: string;
  /** @default 8 */
  readonly maxConnections?: number | undefined;
  /** How long to wait for the server at the start, in milliseconds. @default 60_000 */
  readonly connectDeadlineMs?: number | undefined;
  /** Time limit of a statement in milliseconds; the server enforces it. @default 30_000 */
  readonly statementTimeoutMs?: number | undefined;
  /** Logs waits and notices of the server. */
  readonly logger?: Logger | undefined;
  /** Ends the wait for the server. */
  readonly signal?: AbortSignal | undefined;
}

/** An open pool. Queries go through {@link query} and `transaction`. */
export interface Database {
  readonly schema: string;
  readonly statementTimeoutMs: number;
  /** Only for this package; others use {@link query} and `transaction`. */
  readonly pool: ConnectionPool;
  /** Whether the server answers within a second, and the reason if not. */
  ping(): Promise<{ readonly isUp: true } | { readonly isUp: false; readonly reason: string }>;
  /** Gives running queries a few seconds to finish, then closes. Idempotent. */
  close(): Promise<void>;
}

const DEFAULT_MAX_CONNECTIONS = 8;
const DEFAULT_CONNECT_DEADLINE_MS = 60_000;
const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
/** Time limit of one attempt to connect, after which a network that drops packets is noticed. */
const CONNECT_TRY_SECONDS = 5;
/** A transaction whose client is stuck must not keep its locks for long; statements normally follow within milliseconds. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
const PING_DEADLINE_MS = 1_000;
const SCHEMA_NAME = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * Opens the pool and waits until the server answers.
 * @throws {InvalidInputError} for a malformed address or schema name.
 * @throws {DatabaseUnavailableError} when the server does not answer in time.
 * @throws {DatabaseRefusedError} for bad credentials or an unknown database: waiting would not help.
 * @throws the reason of `signal`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { schema, logger = silentLogger() } = options;
  const url = checkedUrl(options.url);
  if (!SCHEMA_NAME.test(schema)) {
    throw new InvalidInputError(
      `A schema cannot have the name "${schema}"; give 1 to 63 characters out of a-z, 0-9 and _, beginning with a letter`,
      { path: "schema", allowed: SCHEMA_NAME.source },
    );
  }
  const statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  const connect = () =>
    postgres(url, {
      max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
      connect_timeout: CONNECT_TRY_SECONDS,
      backoff: () => 0, // `bounded` makes the pauses
      // The driver does not await its query for types, so a connection that breaks then would end the process. drizzle
      // converts array columns itself.
      fetch_types: false,
      onnotice: (notice) => logger.debug("database notice", { notice: notice.message }),
      connection: {
        application_name: `hone-${schema}`,
        search_path: `"${schema}"`,
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
        TimeZone: "UTC",
      },
    });
  const pool = new ConnectionPool(connect);
  try {
    await waitUntilUp(pool, options, logger);
  } catch (error) {
    await pool.close();
    throw error;
  }
  return wrap(pool, schema, statementTimeoutMs);
}

/** Options of {@link query}. */
export interface QueryOptions {
  /** Names the query in error messages, such as "read the run". @default "query the database" */
  readonly action?: string | undefined;
  /** Time limit of all attempts together. @default the statement timeout and five seconds */
  readonly deadlineMs?: number | undefined;
  /**
   * Whether running it twice has the same effect as once (reads, upserts). It is then repeated until the deadline while the
   * server is unreachable. @default false
   */
  readonly isRepeatable?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs queries outside a transaction, with typed errors and a time limit.
 * @throws the errors of `errors.ts`, what `work` throws, or the reason of the signal.
 * @example const rows = await query(database, (db) => db.select().from(runs).where(eq(runs.id, id)));
 */
export async function query<T>(
  database: Database,
  work: (db: Queryable) => Promise<T>,
  options: QueryOptions = {},
): Promise<T> {
  const { action = "query the database", isRepeatable = false } = options;
  return bounded(database.pool, () => work(database.pool.queries), {
    action,
    deadlineMs: options.deadlineMs ?? database.statementTimeoutMs + ANSWER_MARGIN_MS,
    isRetryable: (error) => isRepeatable && error instanceof DatabaseUnavailableError,
    signal: options.signal,
  });
}

function wrap(pool: ConnectionPool, schema: string, statementTimeoutMs: number): Database {
  return {
    schema,
    pool,
    statementTimeoutMs,
    async ping() {
      try {
        await bounded(pool, async () => pool.driver`select 1`, {
          action: "answer a ping",
          deadlineMs: PING_DEADLINE_MS,
        });
        return { isUp: true };
      } catch (error) {
        return { isUp: false, reason: redactText(describeError(error)) };
      }
    },
    close: () => pool.close(),
  };
}

async function waitUntilUp(pool: ConnectionPool, options: DatabaseOptions, logger: Logger): Promise<void> {
  const where = redactText(options.url);
  let isTold = false;
  await bounded(pool, async () => pool.driver`select 1`, {
    action: `connect to ${where}`,
    deadlineMs: options.connectDeadlineMs ?? DEFAULT_CONNECT_DEADLINE_MS,
    isRetryable: (error) => {
      if (!(error instanceof DatabaseUnavailableError)) return false;
      if (!isTold) logger.info("waiting for the database", { url: where, error });
      isTold = true;
      return true;
    },
    signal: options.signal,
  });
}

function checkedUrl(text: string): string {
  const isPostgres = URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol);
  if (isPostgres) return text;
  throw new InvalidInputError(
    `"${redactText(text)}" is not the address of a database; give one such as postgres://user:password@host:port/database`,
    { path: "databaseUrl", allowed: "postgres://user:password@host:port/database" },
  );
}
