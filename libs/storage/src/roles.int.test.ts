import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { eventually, startPostgres } from "@hone/testing";
import postgres from "postgres";
import { openDatabase } from "./database.ts";
import { type Migration, migrate } from "./migrate.ts";
import { chartRolesScript, ROLES, type Role, readyRoles } from "./roles.ts";

/** Every kind of thing that services make: tables with a sequence of a column, and a sequence of its own. */
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

/** As a service does when it starts. */
async function migrateAs(url: string, schema: Role, ...migrations: Migration[]): Promise<string[]> {
  const database = await openDatabase({ url, schema, maxConnections: 1 });
  try {
    return await migrate(database, { migrations });
  } finally {
    await database.close();
  }
}

/** Asks once, as somebody. */
async function ask(url: string, text: string): Promise<readonly postgres.Row[]> {
  const sql = connect(url);
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Schemas and what lies in them, by their owners. */
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

/** As an earlier version left it: all of it made by the superuser. */
async function oldDatabase(): Promise<string> {
  const url = await freshDatabase();
  for (const role of ROLES) await migrateAs(url, role, CREATE);
  assert.deepEqual(new Set(Object.values(await ownersIn(url))), new Set(["hone"]));
  return url;
}

/** What psql does with the chart's file. */
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
  describe(`the roles as ${who} makes them`, () => {
    let urls: Readonly<Record<Role, string>>;
    before(async () => {
      urls = await roles(await freshDatabase());
      for (const role of ROLES) await migrateAs(urls[role], role, CREATE);
    });

    for (const [role, other] of [
      ["trainer", "tracer"],
      ["tracer", "trainer"],
    ] as const) {
      test(`${role} has its own rows, and none of ${other}'s`, async () => {
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

      test(`${role} makes no roles, reads no files and starts no programs`, async () => {
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

    test("nobody else comes in without being told to", async () => {
      await owner`drop role if exists stranger`;
      await owner`create role stranger login password 'strange'`;
      const url = Object.assign(new URL(urls.trainer), { username: "stranger", password: "strange" });
      await assert.rejects(ask(url.href, "select 1"), isForbidden);
    });
  });
}

describe("readyRoles()", () => {
  test("hands over what the superuser made, with its rows, and again changes nothing but passwords", async () => {
    const url = await oldDatabase();
    const first = await readyRoles({ url });
    const owners = await ownersIn(url);
    for (const [name, role] of Object.entries(owners)) assert.equal(role, name.split(".")[0], name);
    assert.equal(Object.keys(owners).length, 2 * 8, JSON.stringify(owners));
    // What the services go on with: rows, both kinds of sequences, migrations that are due.
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

  test("takes back what a role may no longer do", async () => {
    const url = await freshDatabase();
    const { tracer } = await readyRoles({ url });
    await owner`alter role tracer superuser createrole`;
    assert.ok(tracer !== (await readyRoles({ url })).tracer);
    const [rights] = await owner`select rolsuper, rolcreaterole from pg_roles where rolname = 'tracer'`;
    assert.deepEqual({ ...rights }, { rolsuper: false, rolcreaterole: false });
  });

  test("is all or nothing when it is killed half-way, and another start makes up for it", async () => {
    const url = await oldDatabase();
    const before = await ownersIn(url);
    // The trainer's tables are handed over first: it then stands before one of the tracer's.
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
    // The server notices when it has the table, and finds nobody to answer to.
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

/** 42501: the server understood, and refused for want of rights. */
function isForbidden(error: unknown): boolean {
  assert.equal((error as postgres.PostgresError).code, "42501", String(error));
  return true;
}
