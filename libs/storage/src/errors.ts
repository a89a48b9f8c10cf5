/**
 * Errors of the storage package. Only this file translates errors of PostgreSQL and of the driver into them.
 *
 * Retryable: {@link DatabaseUnavailableError}, {@link DatabaseFullError}, {@link DatabaseTimeoutError},
 * {@link DatabaseReadOnlyError}, {@link SerializationError}. Terminal: everything else. After one of the first three the
 * caller does not know whether the statement or the commit took effect: repeat only what is idempotent, or check first.
 */

import { describeError, HoneError, RetryableError, TerminalError } from "@hone/core";

/** The server is unreachable, starting, stopping or out of connections, or the connection broke. */
export class DatabaseUnavailableError extends RetryableError {
  constructor(action: string, options?: ErrorOptions) {
    super(
      "DATABASE_UNAVAILABLE",
      `Cannot ${action}: the database is not reachable (${causeText(options)})`,
      options,
    );
  }
}

/** The server's disk is full. It works again once space is freed; the cause names the file. */
export class DatabaseFullError extends RetryableError {
  constructor(action: string, options?: ErrorOptions) {
    super(
      "DATABASE_FULL",
      `Cannot ${action}: the disk of the database is full (${causeText(options)}); free space where PostgreSQL keeps its data, and work goes on by itself`,
      options,
    );
  }
}

/** The server accepts no writes: it is a standby, as around a failover, or was made read-only. Nothing took effect. */
export class DatabaseReadOnlyError extends RetryableError {
  constructor(action: string, options?: ErrorOptions) {
    super(
      "DATABASE_READ_ONLY",
      `Cannot ${action}: the database is read-only (${causeText(options)}); the address must lead to the primary server, and work goes on by itself once that accepts writes`,
      options,
    );
  }
}

/** A statement, a lock or an answer took longer than allowed. */
export class DatabaseTimeoutError extends RetryableError {
  constructor(action: string, options?: ErrorOptions) {
    super("DATABASE_TIMEOUT", `Cannot ${action} within its time limit (${causeText(options)})`, options);
  }
}

/** The transaction conflicted with a concurrent one (serialization failure or deadlock); nothing took effect. */
export class SerializationError extends RetryableError {
  constructor(action: string, options?: ErrorOptions) {
    super(
      "DATABASE_SERIALIZATION",
      `Cannot ${action}: a concurrent transaction came first (${causeText(options)})`,
      options,
    );
  }
}

/** A row with this key exists already. */
export class UniqueViolationError extends TerminalError {
  readonly table: string;
  readonly constraint: string;

  constructor(table: string, constraint: string, options?: ErrorOptions) {
    super(
      "UNIQUE_VIOLATION",
      `Cannot insert into ${table}: a row with this key exists already (${constraint})`,
      options,
    );
    this.table = table;
    this.constraint = constraint;
  }
}

/** A row breaks a foreign key, a check or a not-null rule. */
export class ConstraintViolationError extends TerminalError {
  readonly table: string;
  readonly constraint: string;

  constructor(table: string, constraint: string, options?: ErrorOptions) {
    super(
      "CONSTRAINT_VIOLATION",
      `Cannot write to ${table}: the row breaks ${constraint} (${causeText(options)})`,
      options,
    );
    this.table = table;
    this.constraint = constraint;
  }
}

/** The pool was closed by this process. */
export class DatabaseClosedError extends TerminalError {
  constructor(action: string, options?: ErrorOptions) {
    super(
      "DATABASE_CLOSED",
      `Cannot ${action}: this process has closed its connections to the database (${causeText(options)})`,
      options,
    );
  }
}

/** The server refused for a permanent reason: bad credentials, no such database, wrong SQL. */
export class DatabaseRefusedError extends TerminalError {
  /** The SQLSTATE, five characters (PostgreSQL's appendix A); empty if the server gave none. */
  readonly sqlState: string;

  constructor(action: string, sqlState: string, options?: ErrorOptions) {
    super("DATABASE_REFUSED", `Cannot ${action}: the database refused it (${causeText(options)})`, options);
    this.sqlState = sqlState;
  }
}

/** The migrations in the code and those applied to the schema contradict each other. */
export class MigrationError extends TerminalError {
  readonly schema: string;

  constructor(schema: string, problem: string) {
    super("MIGRATION", `Cannot migrate the schema ${schema}: ${problem}`);
    this.schema = schema;
  }
}

const CONNECTION_CLOSED = "CONNECTION_CLOSED";
/** Codes of the driver and of the operating system for a connection that broke or could not be made. */
const CONNECTION_CODES = new Set([
  CONNECTION_CLOSED,
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
]);
/** SQLSTATEs, PostgreSQL's appendix A. Class 08 is added below. */
const UNAVAILABLE_STATES = new Set(["57P01", "57P02", "57P03", "57P05", "53300", "25P03"]);
const FULL_STATE = "53100";
const READ_ONLY_STATE = "25006";
const TIMEOUT_STATES = new Set(["57014", "55P03"]);
const SERIALIZATION_STATES = new Set(["40001", "40P01"]);
const UNIQUE_STATE = "23505";
const CONSTRAINT_CLASS = "23";

/**
 * Translates an error of a query or a connection into a typed one.
 * @param action names the work in the message, such as "insert a run".
 * @returns `error` itself if it is one of Hone's already, or comes from neither the driver nor the server.
 */
export function translateDatabaseError(error: unknown, action: string): unknown {
  if (error instanceof HoneError) return error;
  const source = databaseCause(error);
  if (source === undefined) return error;
  const { code } = source;
  const options = { cause: source.error };
  if (code === "CONNECTION_ENDED") return new DatabaseClosedError(action, options);
  if (CONNECTION_CODES.has(code) || UNAVAILABLE_STATES.has(code) || code.startsWith("08")) {
    return new DatabaseUnavailableError(action, options);
  }
  if (code === FULL_STATE) return new DatabaseFullError(action, options);
  if (code === READ_ONLY_STATE) return new DatabaseReadOnlyError(action, options);
  if (TIMEOUT_STATES.has(code)) return new DatabaseTimeoutError(action, options);
  if (SERIALIZATION_STATES.has(code)) return new SerializationError(action, options);
  if (code === UNIQUE_STATE) return new UniqueViolationError(source.table, source.constraint, options);
  if (isSqlState(code) && code.startsWith(CONSTRAINT_CLASS)) {
    return new ConstraintViolationError(source.table, source.constraint, options);
  }
  return new DatabaseRefusedError(action, isSqlState(code) ? code : "", options);
}

/** Whether the connection of a query was closed while the query ran. */
export function isClosedConnection(error: unknown): boolean {
  return databaseCause(error)?.code === CONNECTION_CLOSED;
}

interface DatabaseCause {
  readonly error: Error;
  readonly code: string;
  readonly table: string;
  readonly constraint: string;
}

/** Looks through wrappers, such as drizzle's query error, for the error with a code. */
function databaseCause(error: unknown): DatabaseCause | undefined {
  for (let current = error; current instanceof Error; current = current.cause) {
    const code = textField(current, "code");
    if (code === "") continue;
    const isKnown =
      current.name === "PostgresError" || CONNECTION_CODES.has(code) || code === "CONNECTION_ENDED";
    if (!isKnown) continue;
    return {
      error: current,
      code,
      table: textField(current, "table_name") || "a table",
      constraint:
        textField(current, "constraint_name") || textField(current, "column_name") || "a constraint",
    };
  }
  return undefined;
}

function textField(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === "string" ? value : "";
}

function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code);
}

function causeText(options: ErrorOptions | undefined): string {
  return options?.cause === undefined ? "unknown" : describeError(options.cause);
}
