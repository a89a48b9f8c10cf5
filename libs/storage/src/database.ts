/**
 * The connection pool of a service.
 *
 * D1: each service sees its own PostgreSQL schema: it is the search path of every connection, so tables are named
 *     without it and one server holds several services, or several tests.
 * D2: nothing waits without a bound: connecting, statements (on the server), answers (here) and locks.
 * D3: a lost connection is made again by the next query (connection-pool.ts); the pool never gives up by itself.
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
  /** The service's schema; migrations make it. Lower case, digits and `_`. */
  readonly schema: string;
  /** @default 8 */
  readonly maxConnections?: number | undefined;
  /** How long the server may take to be there at start, milliseconds. @default 60_000 */
  readonly connectDeadlineMs?: number | undefined;
  /** Longest statement, milliseconds; the server ends it. @default 30_000 */
  readonly statementTimeoutMs?: number | undefined;
  /** Told of waits and notices. */
  readonly logger?: Logger | undefined;
  /** Ends the wait for the server. */
  readonly signal?: AbortSignal | undefined;
}

/** An open pool. Queries go through {@link query} and `transaction`. */
export interface Database {
  readonly schema: string;
  readonly statementTimeoutMs: number;
  /** For this package: everyone else goes through {@link query} and `transaction`. */
  readonly pool: ConnectionPool;
  /** Whether the server answers right now, within a second; the reason when not. */
  ping(): Promise<{ readonly isUp: true } | { readonly isUp: false; readonly reason: string }>;
  /** Lets running queries end for a few seconds, then closes. Idempotent. */
  close(): Promise<void>;
}

const DEFAULT_MAX_CONNECTIONS = 8;
const DEFAULT_CONNECT_DEADLINE_MS = 60_000;
const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
/** One try to connect; a host that swallows packets is noticed in this time. */
const CONNECT_TRY_SECONDS = 5;
/** A transaction whose client stands still must not hold its locks for long: statements follow each other in milliseconds. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
const PING_DEADLINE_MS = 1_000;
const SCHEMA_NAME = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * Opens the pool and waits until the server answers.
 * @throws {InvalidInputError} for a malformed address or schema name.
 * @throws {DatabaseUnavailableError} when the server is not there in time.
 * @throws {DatabaseRefusedError} for bad credentials or an unknown database: waiting would not help.
 * @throws the reason of `signal`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { schema, logger = silentLogger() } = options;
  const url = checkedUrl(options.url);
  if (!SCHEMA_NAME.test(schema)) {
    throw new InvalidInputError(
      `Cannot use a schema as its name must match ${SCHEMA_NAME.source}: current value is "${schema}"`,
      { path: "schema", allowed: SCHEMA_NAME.source },
    );
  }
  const statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  const connect = () =>
    postgres(url, {
      max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
      connect_timeout: CONNECT_TRY_SECONDS,
      backoff: () => 0, // pauses are `bounded`'s
      // Fetching them is a query that nobody awaits: a connection that breaks then would end the process. drizzle writes
      // and reads array columns by itself.
      fetch_types: false,
      onnotice: (notice) => logger.debug("database notice", { notice: notice["message"] }),
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
  /** What is tried, for error messages: "read the run". @default "query the database" */
  readonly action?: string | undefined;
  /** How long the answer may take, all tries together. @default the statement timeout and five seconds */
  readonly deadlineMs?: number | undefined;
  /**
   * Whether doing it twice is the same as doing it once (reads, upserts). Then an absent server is waited for until the
   * deadline. @default false
   */
  readonly isRepeatable?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs queries outside a transaction, with typed errors and a bound.
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
    `Cannot open a database as its address must be a postgres:// URL: current value is "${redactText(text)}"`,
    { path: "databaseUrl", allowed: "postgres://user:password@host:port/database" },
  );
}
