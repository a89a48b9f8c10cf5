/**
 * The roles of the database: one for each service that stores rows.
 *
 * This is the only place that defines them. `hone up` creates the roles of its own database with `readyRoles`, and the chart
 * runs helm/hone/files/roles.sql, which `npm run generate` writes from `chartRolesScript`.
 *
 * R1: a role creates the schema of its name, owns it with everything in it, and may neither read nor write another's.
 * R2: no role may create roles or databases, copy the server's log, or read files and start programs with the server's account.
 *     The superuser may: it creates the roles, and is for a person with psql, never for a service.
 * R3: repeating `readyRoles` changes only the passwords. It is one transaction, so that the next start finds either the old
 *     state or the new one, wherever it was interrupted.
 */

import { randomBytes } from "node:crypto";
import type postgres from "postgres";
import { bounded } from "./bounded.ts";
import { openDatabase } from "./database.ts";
import { DatabaseUnavailableError } from "./errors.ts";

/** Each role has the name of its service, which is also that of its schema. */
export const ROLES = ["trainer", "tracer"] as const;
export type Role = (typeof ROLES)[number];

export interface ReadyRolesOptions {
  /** The superuser's address. */
  readonly url: string;
  /** Time limit of connecting and all statements together. @default 60_000 */
  readonly deadlineMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The name of the chart's own database (`POSTGRES_DB`). */
const CHART_DATABASE = "hone";
const PASSWORD_BYTES = 24;
const DEFAULT_DEADLINE_MS = 60_000;

/**
 * Creates the roles in a database, gives them new passwords, and makes them owners of what an earlier version created as the
 * superuser. Call it before a service connects, as it locks the tables for a moment.
 * @returns each role's address.
 * @throws the errors of `errors.ts` or the reason of the signal; nothing has changed then.
 */
export async function readyRoles(options: ReadyRolesOptions): Promise<Readonly<Record<Role, string>>> {
  const { url, deadlineMs = DEFAULT_DEADLINE_MS, signal } = options;
  const passwords = new Map(
    ROLES.map((role) => [role, randomBytes(PASSWORD_BYTES).toString("base64url")] as const),
  );
  const database = await openDatabase({
    url,
    schema: "public",
    maxConnections: 1,
    connectDeadlineMs: deadlineMs,
    statementTimeoutMs: deadlineMs,
    signal,
  });
  try {
    const run = () =>
      database.pool.driver.begin(async (sql) => {
        const known = await sql<{ name: string }[]>`select rolname as name from pg_roles`;
        const [current] = await sql<{ name: string }[]>`select current_database() as name`;
        for (const [role, password] of passwords) {
          const verb = known.some(({ name }) => name === role) ? "alter" : "create";
          await sql.unsafe(roleStatement(verb, role, `'${password}'`)); // the password has only letters, digits, - and _
        }
        for (const statement of grantStatements(current?.name ?? "")) await sql.unsafe(statement);
        for (const role of ROLES) await handOver(sql, role);
      });
    await bounded(database.pool, run, {
      action: "create the roles of the database",
      deadlineMs,
      isRetryable: (error) => error instanceof DatabaseUnavailableError, // R3
      signal,
    });
  } finally {
    await database.close();
  }
  return Object.fromEntries(
    [...passwords].map(([role, password]) => [role, withLogin(url, role, password)]),
  ) as Record<Role, string>;
}

/** @returns the script that psql runs once, when the chart's database is created; passwords are psql's variables `<role>_password`. */
export function chartRolesScript(): string {
  const lines = [
    "-- Written by `npm run generate` from libs/storage/src/roles.ts.",
    "-- Run once, when the database is made: a role for each service that keeps rows, which owns the schema of its name.",
    ...[
      ...ROLES.map((role) => roleStatement("create", role, `:'${role}_password'`)),
      ...grantStatements(CHART_DATABASE),
    ].map((statement) => `${statement};`),
  ];
  return `${lines.join("\n")}\n`;
}

/** @returns the statement that creates or changes a role (R2). @param password as SQL. */
function roleStatement(verb: "create" | "alter", role: Role, password: string): string {
  return `${verb} role ${role} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password ${password}`;
}

/** R1: `create` is the right to create schemas. By default PostgreSQL lets every role connect to every database. */
function grantStatements(database: string): string[] {
  const name = `"${database.replaceAll('"', '""')}"`;
  return [
    `revoke all on database ${name} from public`,
    `grant connect, create on database ${name} to ${ROLES.join(", ")}`,
    "revoke all on schema public from public",
  ];
}

/** Makes a role the owner of what it does not own yet (R1): earlier versions and people created objects as the superuser. */
async function handOver(sql: postgres.TransactionSql, role: Role): Promise<void> {
  // The sequence of a column has the owner of its table and cannot be changed alone. `alter table` also works for views and sequences.
  const statements = await sql<{ text: string }[]>`
    with own as (select oid from pg_roles where rolname = ${role})
    select format('alter schema %I owner to %I', nspname, nspname) as text
    from pg_namespace, own
    where nspname = ${role} and nspowner <> own.oid
    union all
    select format('alter table %I.%I owner to %I', nspname, relname, nspname)
    from pg_class join pg_namespace on pg_namespace.oid = relnamespace, own
    where nspname = ${role} and relowner <> own.oid and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and not (relkind = 'S' and exists (
        select from pg_depend
        where classid = 'pg_class'::regclass and objid = pg_class.oid
          and refclassid = 'pg_class'::regclass and deptype in ('a', 'i')))`;
  for (const { text } of statements) await sql.unsafe(text);
}

function withLogin(url: string, role: Role, password: string): string {
  const address = new URL(url);
  address.username = role;
  address.password = password;
  return address.href;
}
