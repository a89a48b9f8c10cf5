/**
 * PostgreSQL: the pool, queries and transactions with typed errors, migrations, and the roles of the services. The only table
 * of this package is the list of applied migrations in each service's schema.
 *
 * @example
 * const database = await openDatabase({ url, schema: "trainer", signal });
 * await migrate(database, { migrations });
 * await transaction(database, async (tx) => { await tx.insert(runs).values(run); });
 * await database.close();
 */

export type { SQL } from "drizzle-orm";
export type { Database, DatabaseOptions, QueryOptions } from "./database.ts";
export { openDatabase, query } from "./database.ts";
export {
  and,
  asc,
  bigint,
  bigserial,
  boolean,
  customType,
  desc,
  doublePrecision,
  eq,
  gt,
  gte,
  inArray,
  integer,
  isNull,
  jsonb,
  lt,
  lte,
  max,
  ne,
  notInArray,
  or,
  pgTable,
  primaryKey,
  sql,
  text,
  timestamp,
} from "./drizzle.ts";
export {
  ConstraintViolationError,
  DatabaseClosedError,
  DatabaseReadOnlyError,
  DatabaseRefusedError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  MigrationError,
  SerializationError,
  translateDatabaseError,
  UniqueViolationError,
} from "./errors.ts";
export type { MigrateOptions, Migration } from "./migrate.ts";
export { MIGRATIONS_TABLE, migrate } from "./migrate.ts";
export type { Queryable } from "./queryable.ts";
export type { ReadyRolesOptions, Role } from "./roles.ts";
export { chartRolesScript, ROLES, readyRoles } from "./roles.ts";
export type { TransactionOptions } from "./transaction.ts";
export { transaction } from "./transaction.ts";
