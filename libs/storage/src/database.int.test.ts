import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "@hone/telemetry";
import { eventually, startPostgres, temporaryFolder } from "@hone/testing";
import { type Relay, startRelay } from "../test/relay.ts";
import { type Database, openDatabase, query } from "./database.ts";
import { integer, pgTable, sql, text } from "./drizzle.ts";
import {
  ConstraintViolationError,
  DatabaseClosedError,
  DatabaseRefusedError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  SerializationError,
  UniqueViolationError,
} from "./errors.ts";
import { migrate } from "./migrate.ts";
import type { Queryable } from "./queryable.ts";
import { transaction } from "./transaction.ts";

const counters = pgTable("counters", {
  name: text("name").primaryKey(),
  value: integer("value").notNull(),
});

const MIGRATIONS = [
  {
    id: 1,
    name: "create-counters",
    sql: "create table counters (name text primary key, value integer not null check (value >= 0))",
  },
];

describe("database", () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  let database: Database;

  before(async () => {
    server = await startPostgres();
    database = await openDatabase({ url: server.url, schema: "counting", statementTimeoutMs: 2_000 });
    await migrate(database, { migrations: MIGRATIONS });
  });
  after(async () => {
    await database?.close();
    await server?.stop();
  });

  test("query() reads what it wrote, in the service's schema", async () => {
    await query(database, (db) => db.insert(counters).values({ name: "a", value: 1 }));
    const rows = await query(database, (db) => db.select().from(counters));
    assert.deepEqual(rows, [{ name: "a", value: 1 }]);
    const places = await query(database, (db) =>
      db.execute(sql`select schemaname from pg_tables where tablename = 'counters'`),
    );
    assert.deepEqual(
      places.map((row) => row.schemaname),
      ["counting"],
    );
  });

  test("query() writes and reads array columns", async () => {
    const lists = pgTable("lists", {
      words: text("words").array().notNull(),
      sizes: integer("sizes").array(),
    });
    await query(database, (db) => db.execute(sql`create table lists (words text[] not null, sizes int[])`));
    const row = { words: ['a "quoted" one', "with, comma", ""], sizes: [1, -2] };
    await query(database, (db) => db.insert(lists).values(row));
    assert.deepEqual(await query(database, (db) => db.select().from(lists)), [row]);
  });

  test("query() names the unique constraint that a row breaks", async () => {
    await query(database, (db) => db.insert(counters).values({ name: "twice", value: 1 }));
    await assert.rejects(
      query(database, (db) => db.insert(counters).values({ name: "twice", value: 2 })),
      (error) =>
        error instanceof UniqueViolationError &&
        error.table === "counters" &&
        error.constraint === "counters_pkey",
    );
  });

  test("query() names the check constraint that a row breaks", async () => {
    await assert.rejects(
      query(database, (db) => db.insert(counters).values({ name: "negative", value: -1 })),
      (error) => error instanceof ConstraintViolationError && error.constraint === "counters_value_check",
    );
  });

  test("query() reports wrong SQL as refused, with its SQLSTATE", async () => {
    await assert.rejects(
      query(database, (db) => db.execute(sql`select * from nowhere`)),
      (error) => error instanceof DatabaseRefusedError && error.sqlState === "42P01",
    );
  });

  test("query() rejects when a statement exceeds the statement timeout", async () => {
    const impatient = await openDatabase({ url: server.url, schema: "counting", statementTimeoutMs: 50 });
    try {
      await assert.rejects(
        query(impatient, (db) => db.execute(sql`select pg_sleep(30)`)),
        DatabaseTimeoutError,
      );
    } finally {
      await impatient.close();
    }
  });

  test("query() passes on what the work throws", async () => {
    const own = new Error("mine");
    await assert.rejects(
      query(database, () => Promise.reject(own)),
      (error) => error === own,
    );
  });

  test("transaction() rolls back when the work throws", async () => {
    await assert.rejects(
      transaction(database, async (tx) => {
        await tx.insert(counters).values({ name: "undone", value: 1 });
        throw new Error("changed my mind");
      }),
      /changed my mind/,
    );
    const rows = await query(database, (db) => db.select().from(counters).where(sql`name = 'undone'`));
    assert.deepEqual(rows, []);
  });

  test("transaction() reports a conflict with a concurrent one, and tries again if asked to", async () => {
    await query(database, (db) => db.insert(counters).values({ name: "shared", value: 0 }));
    const increment = (maxAttempts: number, meet: () => Promise<void>) =>
      transaction(
        database,
        async (tx) => {
          const [row] = await tx.select().from(counters).where(sql`name = 'shared'`);
          await meet();
          await tx
            .update(counters)
            .set({ value: (row?.value ?? 0) + 1 })
            .where(sql`name = 'shared'`);
        },
        { isolation: "serializable", maxAttempts },
      );

    const bothRead = meeting(2);
    const outcomes = await Promise.allSettled([increment(1, bothRead), increment(1, bothRead)]);
    const failures = outcomes.filter((outcome) => outcome.status === "rejected");
    assert.equal(failures.length, 1);
    assert.ok(failures[0]?.reason instanceof SerializationError);

    const bothReadAgain = meeting(2);
    await Promise.all([increment(5, bothReadAgain), increment(5, bothReadAgain)]);
    const rows = await query(database, (db) => db.select().from(counters).where(sql`name = 'shared'`));
    assert.equal(rows[0]?.value, 3);
  });

  test("a repeatable query opens a new connection after one was lost", async () => {
    const fragile = await openDatabase({ url: server.url, schema: "counting", maxConnections: 1 });
    try {
      const [row] = await query(fragile, (db) => db.execute(sql`select pg_backend_pid() as pid`));
      const running = query(fragile, (db) => db.execute(sql`select pg_sleep(30)`));
      await Promise.all([
        assert.rejects(running, DatabaseUnavailableError),
        query(database, (db) => db.execute(sql`select pg_terminate_backend(${row?.pid}::int)`)),
      ]);
      const [again] = await query(fragile, (db) => db.execute(sql`select 1 as one`), { isRepeatable: true });
      assert.equal(again?.one, 1);
    } finally {
      await fragile.close();
    }
  });

  test("openDatabase() waits for a server that starts later", async () => {
    const target = Number(new URL(server.url).port);
    const port = await freePort();
    let starting: Promise<Relay> | undefined;
    const lines: string[] = [];
    const logger = createLogger({
      service: "counter",
      sink: {
        write(line) {
          lines.push(line);
          starting ??= startRelay({ target, port });
        },
      },
    });
    const late = await openDatabase({ url: through(server.url, port), schema: "counting", logger });
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /waiting for the database/);
    assert.deepEqual(await late.ping(), { isUp: true });
    await late.close();
    await (await starting)?.[Symbol.asyncDispose]();
  });

  test("no query waits for ever when connections are reset under load", async () => {
    await using relay = await startRelay({ target: Number(new URL(server.url).port) });
    const shaken = await openDatabase({
      url: through(server.url, relay.port),
      schema: "counting",
      maxConnections: 2,
    });
    const stopping = new AbortController();
    let numDone = 0;
    const work = Array.from({ length: 20 }, async () => {
      while (!stopping.signal.aborted) {
        await query(shaken, (db) => db.execute(sql`select ${numDone}::int`), { isRepeatable: true });
        numDone++;
      }
    });
    for (let round = 0; round < 20; round++) {
      const before = numDone;
      relay.reset();
      await eventually(`progress after reset ${round}`, () => numDone > before + 20);
    }
    stopping.abort();
    await Promise.all(work);
    await shaken.close();
  });

  test("a query without an answer rejects at its deadline, and the next one gets a new connection", async () => {
    const target = Number(new URL(server.url).port);
    const port = await freePort();
    const relay = await startRelay({ target, port });
    const cut = await openDatabase({ url: through(server.url, port), schema: "counting" });
    relay.freeze();
    await assert.rejects(
      query(cut, (db) => db.execute(sql`select 1`), { deadlineMs: 100 }),
      DatabaseTimeoutError,
    );
    assert.equal((await cut.ping()).isUp, false);
    await relay[Symbol.asyncDispose]();
    await using _healed = await startRelay({ target, port });
    await query(cut, (db) => db.execute(sql`select 1`), { isRepeatable: true });
    await cut.close();
  });

  test("a transaction rejects when its connection breaks, and is rolled back", async () => {
    await using relay = await startRelay({ target: Number(new URL(server.url).port) });
    const fragile = await openDatabase({ url: through(server.url, relay.port), schema: "counting" });
    await assert.rejects(
      transaction(fragile, async (tx) => {
        await tx.insert(counters).values({ name: "lost", value: 1 });
        relay.reset();
        await tx.insert(counters).values({ name: "lost too", value: 1 });
      }),
      DatabaseUnavailableError,
    );
    const rows = await query(fragile, (db) => db.select().from(counters).where(sql`name like 'lost%'`), {
      isRepeatable: true,
    });
    assert.deepEqual(rows, []);
    await fragile.close();
  });

  test("a transaction rejects when the server closes its connection, without ending the process", async () => {
    await using relay = await startRelay({ target: Number(new URL(server.url).port) });
    const fragile = await openDatabase({ url: through(server.url, relay.port), schema: "counting" });
    const sleep = sql`select pg_sleep(20)`;
    for (const work of [
      (tx: Queryable) => tx.execute(sleep),
      (tx: Queryable) => Promise.all([tx.execute(sleep), tx.execute(sleep), tx.execute(sleep)]),
    ]) {
      const working = transaction(fragile, async (tx) => {
        await tx.insert(counters).values({ name: "lost", value: 1 });
        setTimeout(() => relay.end(), 50);
        await work(tx);
      });
      await assert.rejects(working, DatabaseUnavailableError);
      await setImmediate(); // an error that the driver throws asynchronously would fail the test now
      const rows = await query(fragile, (db) => db.select().from(counters).where(sql`name = 'lost'`), {
        isRepeatable: true,
      });
      assert.deepEqual(rows, []);
    }
    await fragile.close();
  });

  test("a repeatable query waits for a server that restarts", async () => {
    await using folder = await temporaryFolder("restart");
    const first = await startPostgres({ folder: folder.path });
    const patient = await openDatabase({ url: first.url, schema: "counting" });
    await migrate(patient, { migrations: MIGRATIONS });
    await first.stop();
    await assert.rejects(
      query(patient, (db) => db.select().from(counters)),
      DatabaseUnavailableError,
    );
    const asked = query(patient, (db) => db.select().from(counters), { isRepeatable: true });
    await using _second = await startPostgres({
      folder: folder.path,
      port: Number(new URL(first.url).port),
    });
    assert.deepEqual(await asked, []);
    await patient.close();
  });

  test("openDatabase() gives up at its deadline, and at once when the signal aborts", async () => {
    const url = new URL(server.url);
    url.port = String(await freePort());
    await assert.rejects(
      openDatabase({ url: url.href, schema: "counting", connectDeadlineMs: 200 }),
      (error) => error instanceof DatabaseUnavailableError && !error.message.includes(url.password),
    );
    const reason = new Error("stopping");
    await assert.rejects(
      openDatabase({ url: url.href, schema: "counting", signal: AbortSignal.abort(reason) }),
      (error) => error === reason,
    );
  });

  test("openDatabase() does not wait for a database that does not exist", async () => {
    const url = new URL(server.url);
    url.pathname = "/no_such_database";
    await assert.rejects(
      openDatabase({ url: url.href, schema: "counting" }),
      (error) => error instanceof DatabaseRefusedError && error.sqlState === "3D000",
    );
  });

  test("close() is idempotent and later queries are refused for good", async () => {
    const brief = await openDatabase({ url: server.url, schema: "counting" });
    await Promise.all([brief.close(), brief.close()]);
    await assert.rejects(
      query(brief, (db) => db.execute(sql`select 1`)),
      DatabaseClosedError,
    );
    assert.equal((await brief.ping()).isUp, false);
  });
});

/** Resolves for all callers once there are `count` of them, and at once for later callers. */
function meeting(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  return async () => {
    arrived++;
    if (arrived >= count) resolve();
    await promise;
  };
}

function through(url: string, port: number): string {
  const relayed = new URL(url);
  relayed.port = String(port);
  return relayed.href;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  assert.ok(address !== null && typeof address === "object");
  return address.port;
}
