import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { eventually, startPostgres } from "@hone/testing";
import postgres from "postgres";
import { openDatabase } from "./database.ts";
import { type Migration, migrate } from "./migrate.ts";
import { chartRolesScript, ROLES, type Role, readyRoles } from "./roles.ts";

/** Every kind of object that services create: a table whose column has a sequence, and a separate sequence. */
const CREATE: Migration = {
  id: 1,
  name: "create-things",
  sql: `create table things (id bigserial primary key, text text);
    create sequence revisions;
    create index things_by_text on things (text);
    insert into things (text) values ('first'), ('second');`,
};
const ADD: Migration = { id: 2, name: "add-more", sql: "alter table things add column more text" };
const MODULE = new URL("./roles.ts", import.meta.url).href;

let server: Awaited<ReturnType<typeof startPostgres>>;
let owner: postgres.Sql;
let numDatabases = 0;
before(async () => {
  server = await startPostgres();
  owner = connect(server.url);
});
after(async () => {
  await owner?.end({ timeout: 5 });
  await server?.stop();
});

function connect(url: string): postgres.Sql {
  return postgres(url, { max: 1, onnotice: () => undefined, fetch_types: false });
}

async function freshDatabase(): Promise<string> {
  const name = `fresh_${++numDatabases}`;
  await owner`create database ${owner(name)}`;
  return server.url.replace(/\/[^/]*$/, `/${name}`);
}

/** Migrates as a service does when it starts. */
async function migrateAs(url: string, schema: Role, ...migrations: Migration[]): Promise<string[]> {
  const database = await openDatabase({ url, schema, maxConnections: 1 });
  try {
    return await migrate(database, { migrations });
  } finally {
    await database.close();
  }
}

/** Runs one query with the user in the address. */
async function ask(url: string, text: string): Promise<readonly postgres.Row[]> {
  const sql = connect(url);
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** The owner of every schema and of the objects in it. */
async function ownersIn(url: string): Promise<Readonly<Record<string, string>>> {
  const rows = await ask(
    url,
    `select nspname as name, pg_get_userbyid(nspowner) as owner from pg_namespace
       where nspname in ('trainer', 'tracer')
     union all
     select relnamespace::regnamespace || '.' || relname, pg_get_userbyid(relowner) from pg_class
       where relnamespace::regnamespace::text in ('trainer', 'tracer')
     order by 1`,
  );
  return Object.fromEntries(rows.map(({ name, owner }) => [name, owner]));
}

/** A database of an earlier version, in which the superuser created everything. */
async function oldDatabase(): Promise<string> {
  const url = await freshDatabase();
  for (const role of ROLES) await migrateAs(url, role, CREATE);
  assert.deepEqual(new Set(Object.values(await ownersIn(url))), new Set(["hone"]));
  return url;
}

/** Runs the chart's file as psql does. */
async function rolesOfChart(url: string): Promise<Readonly<Record<Role, string>>> {
  const name = new URL(url).pathname.slice(1);
  const isMade = (await ask(url, "select from pg_roles where rolname = 'trainer'")).length > 0;
  const script = chartRolesScript()
    .replaceAll(/:'(\w+)_password'/g, "'$1-password'")
    .replaceAll('"hone"', `"${name}"`);
  await ask(url, isMade ? script.replaceAll("create role", "alter role") : script);
  const entries = ROLES.map((role) => {
    const address = Object.assign(new URL(url), { username: role, password: `${role}-password` });
    return [role, address.href];
  });
  return Object.fromEntries(entries);
}

for (const [who, roles] of [
  ["hone up", (url: string) => readyRoles({ url })],
  ["the chart", rolesOfChart],
] as const) {
  describe(`the roles that ${who} creates`, () => {
    let urls: Readonly<Record<Role, string>>;
    before(async () => {
      urls = await roles(await freshDatabase());
      for (const role of ROLES) await migrateAs(urls[role], role, CREATE);
    });

    for (const [role, other] of [
      ["trainer", "tracer"],
      ["tracer", "trainer"],
    ] as const) {
      test(`${role} can read and write its own rows, and none of ${other}'s`, async () => {
        const [counted] = await ask(urls[role], `select count(*)::int as rows from ${role}.things`);
        assert.deepEqual({ ...counted }, { rows: 2 });
        for (const text of [
          `select * from ${other}.things`,
          `select * from ${other}.hone_migrations`,
          `insert into ${other}.things (text) values ('forged')`,
          `update ${other}.things set text = 'forged'`,
          `delete from ${other}.things`,
          `truncate ${other}.things`,
          `drop table ${other}.things`,
          `alter table ${other}.things add column forged text`,
          `create table ${other}.more (id int)`,
          `create trigger forged before insert on ${other}.things for each row execute function suppress_redundant_updates_trigger()`,
          `select nextval('${other}.revisions')`,
          `drop schema ${other} cascade`,
          `set role ${other}`,
        ]) {
          await assert.rejects(ask(urls[role], text), isForbidden, text);
        }
      });

      test(`${role} cannot create roles, read files or start programs`, async () => {
        for (const text of [
          "create role intruder",
          `alter role ${other} password 'guessed'`,
          `alter role ${role} superuser`,
          "alter role hone password 'guessed'",
          `grant ${other} to ${role}`,
          "set role hone",
          "create database more",
          "create table public.things (id int)",
          "alter system set log_statement = 'all'",
          "select pg_read_file('postgresql.conf')",
          "select pg_ls_dir('.')",
          "select lo_import('/etc/passwd')",
          "select rolpassword from pg_authid",
          "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'hone'",
          `copy ${role}.things (text) from '/etc/passwd'`,
          `copy ${role}.things to '/tmp/things'`,
          `copy ${role}.things (text) from program 'id'`,
          "create extension file_fdw",
          `create function ${role}.f() returns int language c as 'libc', 'getpid'`,
          "create subscription s connection 'host=127.0.0.1' publication p",
        ]) {
          await assert.rejects(ask(urls[role], text), isForbidden, text);
        }
      });
    }

    test("no other role may connect without being granted it", async () => {
      await owner`drop role if exists stranger`;
      await owner`create role stranger login password 'strange'`;
      const url = Object.assign(new URL(urls.trainer), { username: "stranger", password: "strange" });
      await assert.rejects(ask(url.href, "select 1"), isForbidden);
    });
  });
}

describe("readyRoles()", () => {
  test("gives the roles what the superuser created, with its rows, and a second call changes only passwords", async () => {
    const url = await oldDatabase();
    const first = await readyRoles({ url });
    const owners = await ownersIn(url);
    for (const [name, role] of Object.entries(owners)) assert.equal(role, name.split(".")[0], name);
    assert.equal(Object.keys(owners).length, 2 * 8, JSON.stringify(owners));
    // The services then use rows, both kinds of sequences, and apply pending migrations.
    for (const role of ROLES) {
      assert.deepEqual(await migrateAs(first[role], role, CREATE, ADD), ["add-more"]);
      const [inserted] = await ask(
        first[role],
        `insert into ${role}.things (text) values ('third') returning id::int, nextval('${role}.revisions')::int as revision`,
      );
      assert.deepEqual({ ...inserted }, { id: 3, revision: 1 });
    }
    const second = await readyRoles({ url });
    assert.deepEqual(await ownersIn(url), owners);
    assert.notEqual(first.trainer, second.trainer);
    await assert.rejects(ask(first.trainer, "select 1"), { code: "28P01" });
    const texts = await ask(second.trainer, "select text from trainer.things order by id");
    assert.deepEqual(
      texts.map(({ text }) => text),
      ["first", "second", "third"],
    );
  });

  test("revokes rights that a role must not have", async () => {
    const url = await freshDatabase();
    const { tracer } = await readyRoles({ url });
    await owner`alter role tracer superuser createrole`;
    assert.ok(tracer !== (await readyRoles({ url })).tracer);
    const [rights] = await owner`select rolsuper, rolcreaterole from pg_roles where rolname = 'tracer'`;
    assert.deepEqual({ ...rights }, { rolsuper: false, rolcreaterole: false });
  });

  test("changes everything or nothing when it is killed half-way, and the next call completes it", async () => {
    const url = await oldDatabase();
    const before = await ownersIn(url);
    // The trainer's tables are changed first; it then waits for the lock of one of the tracer's.
    const reader = connect(url);
    const held = Promise.withResolvers<void>();
    const reading = reader.begin(async (sql) => {
      await sql`select count(*) from tracer.things`;
      await held.promise;
    });
    const child = spawn(
      process.execPath,
      [
        "--input-type=module",
        "--eval",
        `const { readyRoles } = await import(${JSON.stringify(MODULE)});
         await readyRoles({ url: process.env.HONE_DATABASE_URL });`,
      ],
      { env: { ...process.env, HONE_DATABASE_URL: url }, stdio: "inherit" },
    );
    const waiting = async () =>
      owner`select pid from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table tracer.%'`;
    const isGone = async () => (await waiting()).length === 0;
    await eventually("the hand-over to stand half-way", async () => !(await isGone()), {
      deadlineMs: 60_000,
    });
    child.kill("SIGKILL");
    await once(child, "exit");
    // The server notices the lost connection once it has the lock and wants to answer.
    held.resolve();
    await reading;
    await reader.end({ timeout: 5 });
    await eventually("its session to end", isGone, { deadlineMs: 60_000 });

    const between = await ownersIn(url);
    assert.deepEqual(between, before);
    const urls = await readyRoles({ url });
    for (const [name, role] of Object.entries(await ownersIn(url)))
      assert.equal(role, name.split(".")[0], name);
    const [counted] = await ask(urls.tracer, "select count(*)::int as rows from tracer.things");
    assert.deepEqual({ ...counted }, { rows: 2 });
  });
});

/** Whether the server refused for lack of privileges (SQLSTATE 42501). */
function isForbidden(error: unknown): boolean {
  assert.equal((error as postgres.PostgresError).code, "42501", String(error));
  return true;
}
