import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startPostgres } from "@hone/testing";
import { type Database, openDatabase, query } from "./database.ts";
import { sql } from "./drizzle.ts";
import { DatabaseRefusedError, MigrationError } from "./errors.ts";
import { type Migration, migrate } from "./migrate.ts";

const CREATE: Migration = {
  id: 1,
  name: "create-things",
  sql: "create table things (id integer primary key);\ninsert into things values (1), (2);",
};
const ADD: Migration = { id: 2, name: "name-things", sql: "alter table things add column name text" };

describe("migrate()", () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  let numSchemas = 0;
  const open = () => openDatabase({ url: server.url, schema: `thing_${++numSchemas}` });

  before(async () => {
    server = await startPostgres();
  });
  after(() => server?.stop());

  test("applies migrations in order, once, and returns their names", async () => {
    const database = await open();
    assert.deepEqual(await migrate(database, { migrations: [CREATE] }), ["create-things"]);
    assert.deepEqual(await migrate(database, { migrations: [CREATE, ADD] }), ["name-things"]);
    assert.deepEqual(await migrate(database, { migrations: [CREATE, ADD] }), []);
    assert.equal(await countThings(database), 2);
    await database.close();
  });

  test("applies migrations once when many replicas start together", async () => {
    const schema = "replicated";
    const replicas = await Promise.all(
      Array.from({ length: 4 }, () => openDatabase({ url: server.url, schema, maxConnections: 1 })),
    );
    const applied = await Promise.all(
      replicas.map((replica) => migrate(replica, { migrations: [CREATE, ADD] })),
    );
    assert.deepEqual(applied.flat().sort(), ["create-things", "name-things"]);
    assert.equal(await countThings(replicas[0]!), 2);
    await Promise.all(replicas.map((replica) => replica.close()));
  });

  test("refuses when the text of an applied migration changed", async () => {
    const database = await open();
    await migrate(database, { migrations: [CREATE] });
    const changed = { ...CREATE, sql: `${CREATE.sql} -- better` };
    await assert.rejects(
      migrate(database, { migrations: [changed, ADD] }),
      (error) => error instanceof MigrationError && error.message.includes("create-things"),
    );
    await migrate(database, { migrations: [{ ...CREATE, sql: CREATE.sql.replaceAll("\n", "\r\n") }] });
    await database.close();
  });

  test("refuses a schema that a newer version migrated", async () => {
    const database = await open();
    await migrate(database, { migrations: [CREATE, ADD] });
    await assert.rejects(migrate(database, { migrations: [CREATE] }), /newer/);
    await database.close();
  });

  test("changes nothing when one of several statements fails", async () => {
    const database = await open();
    const broken: Migration = { id: 2, name: "break-things", sql: "drop table things; drop table others" };
    await migrate(database, { migrations: [CREATE] });
    await assert.rejects(migrate(database, { migrations: [CREATE, broken] }), DatabaseRefusedError);
    assert.equal(await countThings(database), 2);
    assert.deepEqual(await migrate(database, { migrations: [CREATE, ADD] }), ["name-things"]);
    await database.close();
  });

  test("refuses gaps in the numbering", async () => {
    const database = await open();
    await assert.rejects(migrate(database, { migrations: [ADD] }), /1, 2, 3/);
    await database.close();
  });
});

async function countThings(database: Database): Promise<number> {
  const [row] = await query(database, (db) => db.execute(sql`select count(*)::int as n from things`));
  return Number(row?.n);
}
