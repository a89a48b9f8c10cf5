import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import postgres from "postgres";
import type { RunningServer } from "../nats/nats-server.ts";
import { isRunning, sendSignal } from "../processes/process-identity.ts";
import { launchPostgres } from "./postgres-server.ts";

const isRoot = process.getuid?.() === 0;
let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "hone postgres "));
  await chmod(root, 0o755);
});
after(() => rm(root, { recursive: true, force: true }));

async function query(server: RunningServer, text: string): Promise<unknown> {
  const sql = postgres(server.url, { max: 1, onnotice: () => undefined });
  try {
    return (await sql.unsafe(text))[0];
  } finally {
    await sql.end();
  }
}

const launch = (folder: string, port?: number) =>
  launchPostgres({ folder, isThrowAway: true, ...(port === undefined ? {} : { port }) });

describe("launchPostgres()", () => {
  test("keeps written rows after a stop and after SIGKILL, on the same port", async () => {
    const folder = join(root, "kept");
    const first = await launch(folder);
    await query(first, "create table kept (value int)");
    await query(first, "insert into kept values (7)");
    await first.stop();
    const second = await launch(folder, first.port);
    assert.equal(second.url, first.url);
    sendSignal(second.pid, "SIGKILL");
    await second.exited;
    await using third = await launch(folder, first.port);
    assert.deepEqual(await query(third, "select value from kept"), { value: 7 });
  });

  test("ends a server that an earlier start left running on the same folder", async () => {
    const folder = join(root, "leftover");
    const first = await launch(folder);
    await using second = await launch(folder);
    assert.equal(isRunning(first.identity), false);
    assert.deepEqual(await query(second, "select 1 as one"), { one: 1 });
  });

  test("creates a half-initialised data folder again, and ignores a pid file of another process", async () => {
    const folder = join(root, "half");
    await mkdir(join(folder, "data.new", "base"), { recursive: true });
    await writeFile(join(folder, "password.new"), "left over");
    const first = await launch(folder);
    await first.stop();
    // The pid is that of this test: a running process that is not PostgreSQL.
    await writeFile(join(folder, "data", "postmaster.pid"), `${process.pid}\n${folder}/data\n`);
    await using second = await launch(folder);
    assert.deepEqual(await query(second, "select 1 as one"), { one: 1 });
  });

  test("requires its password and hides it from other accounts", async () => {
    const folder = join(root, "password");
    await using server = await launch(folder);
    const url = new URL(server.url);
    assert.equal(url.password, await readFile(join(folder, "password"), "utf8"));
    url.password = "guessed";
    const sql = postgres(url.href, { max: 1, onnotice: () => undefined });
    await assert.rejects(sql`select 1`, /password authentication failed/);
    await sql.end();
  });

  test("refuses data of another version and says how to start over", async () => {
    const folder = join(root, "version");
    const first = await launch(folder);
    await first.stop();
    await writeFile(join(folder, "data", "PG_VERSION"), "9\n");
    await assert.rejects(
      launch(folder),
      /holds data of PostgreSQL 9, and this is version 18; remove the folder/,
    );
  });

  test("runs in a folder that PostgreSQL's account cannot enter", {
    skip: isRoot ? false : "needs root",
  }, async () => {
    const closed = join(root, "closed");
    await mkdir(closed, { mode: 0o700 });
    const folder = join(closed, "state");
    const first = await launch(folder);
    await query(first, "create table kept (value int)");
    await first.stop();
    await using second = await launch(folder);
    assert.deepEqual(await query(second, "select count(*)::int as rows from kept"), { rows: 0 });
    await second.stop();
    // A new clone in the same place must not get the data of the deleted one.
    await rm(closed, { recursive: true });
    await mkdir(closed, { mode: 0o700 });
    await using third = await launch(folder);
    await assert.rejects(query(third, "select * from kept"), /does not exist/);
    const placed = (await readFile(join(folder, "location"), "utf8")).trim();
    await third.stop();
    await rm(placed, { recursive: true });
  });
});
