/**
 * Migrations: append-only SQL texts, applied in order, once.
 *
 * M1: one replica migrates at a time. The transaction holds an advisory lock that is named after the schema.
 * M2: all pending migrations and their rows in the ledger are applied in one transaction: all of them or none.
 * M3: an applied migration never changes. One whose text differs, or that is missing in the code, is refused.
 */

import { createHash } from "node:crypto";
import type postgres from "postgres";
import { bounded } from "./bounded.ts";
import type { Database } from "./database.ts";
import { MigrationError } from "./errors.ts";

/** One migration. Texts are kept for ever; a correction is a new migration. */
export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly id: number;
  /** A name for people, such as `create-runs`. */
  readonly name: string;
  /** One or several statements; tables without the schema's name, no BEGIN or COMMIT. */
  readonly sql: string;
}

export interface MigrateOptions {
  readonly migrations: readonly Migration[];
  /** Time limit of the lock and all statements together. @default 120_000 */
  readonly deadlineMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The table in every schema that lists the applied migrations. */
export const MIGRATIONS_TABLE = "hone_migrations";

const DEFAULT_DEADLINE_MS = 120_000;
/** First half of the advisory lock's key: "hone" in ASCII, so that it differs from the locks of other programs. */
const LOCK_SPACE = 0x686f6e65;

interface AppliedMigration {
  readonly id: number;
  readonly name: string;
  readonly digest: string;
}

/**
 * Brings the service's schema up to date, and creates it first if it is missing. Replicas may call it at the same time.
 * @returns the names of the migrations that this call applied.
 * @throws {MigrationError} when the code and the schema contradict each other (M3); nothing changed.
 * @throws {DatabaseRefusedError} when a statement fails; nothing changed.
 */
export async function migrate(database: Database, options: MigrateOptions): Promise<string[]> {
  const { migrations, deadlineMs = DEFAULT_DEADLINE_MS, signal } = options;
  checkNumbering(database.schema, migrations);
  const run = () =>
    database.pool.driver.begin(async (sql) => {
      await sql`select set_config('statement_timeout', ${String(deadlineMs)}, true)`;
      await sql`select pg_advisory_xact_lock(${LOCK_SPACE}, hashtext(${database.schema}))`; // M1
      await createLedger(sql, database.schema);
      const applied = await readLedger(sql);
      const pending = pendingMigrations(database.schema, migrations, applied);
      for (const migration of pending) {
        await sql.unsafe(migration.sql).simple();
        await sql`insert into ${sql(MIGRATIONS_TABLE)} ${sql({ id: migration.id, name: migration.name, digest: digestOf(migration) })}`;
      }
      return pending.map((migration) => migration.name); // M2
    });
  return bounded(database.pool, run, { action: `migrate schema ${database.schema}`, deadlineMs, signal });
}

async function createLedger(sql: postgres.TransactionSql, schema: string): Promise<void> {
  await sql`create schema if not exists ${sql(schema)}`;
  await sql`
    create table if not exists ${sql(MIGRATIONS_TABLE)} (
      id integer primary key,
      name text not null,
      digest text not null,
      applied_at timestamptz not null default now()
    )`;
}

async function readLedger(sql: postgres.TransactionSql): Promise<AppliedMigration[]> {
  return sql<AppliedMigration[]>`select id, name, digest from ${sql(MIGRATIONS_TABLE)} order by id`;
}

/** @returns the migrations that are not applied yet. @throws {MigrationError} by M3. */
function pendingMigrations(
  schema: string,
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  for (const [index, row] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) {
      throw new MigrationError(
        schema,
        `it holds the migration ${row.id} ${row.name}, which a newer version of Hone applied; run that version`,
      );
    }
    if (row.id !== known.id || row.digest !== digestOf(known)) {
      throw new MigrationError(
        schema,
        `the migration ${known.id} ${known.name} was applied with another text, as ${row.id} ${row.name}; restore its text and add a new migration`,
      );
    }
  }
  return migrations.slice(applied.length);
}

function checkNumbering(schema: string, migrations: readonly Migration[]): void {
  for (const [index, { id, name }] of migrations.entries()) {
    if (id !== index + 1)
      throw new MigrationError(
        schema,
        `${id} ${name} stands at position ${index + 1}; number migrations 1, 2, 3 without gaps`,
      );
  }
}

/** SHA-256 of the text with normalised line ends, as a checkout may change them. */
function digestOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql.replaceAll("\r\n", "\n")).digest("hex");
}
