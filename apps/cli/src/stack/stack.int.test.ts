import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  freePort,
  identifyProcess,
  isRunning,
  LOOPBACK,
  launchPostgres,
  type ProcessIdentity,
} from "@hone/embedded";
import { connectBus, StreamName } from "@hone/messaging";
import { openDatabase, query, type SQL, sql } from "@hone/storage";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { findProject, type Project } from "../project.ts";
import { parseReplicas } from "./replicas.ts";
import { OWNER } from "./secrets/bus-users.ts";
import { databaseFileOf } from "./secrets/database-roles.ts";
import { SERVICES } from "./services.ts";
import { startStack } from "./stack.ts";
import { readStack, type StackRecord } from "./stack-file.ts";

/* Tests the command line as a user runs it, with the six real services, in a folder with a space in its name. */

const MAIN = join(import.meta.dirname, "..", "main.ts");
const UP_MS = 120_000;

let folder: TemporaryFolder;
let project: Project;
before(async () => {
  folder = await temporaryFolder("the stack");
  project = findProject({ HONE_STATE_DIR: join(folder.path, "state") });
});
after(async () => {
  await hone("down");
  await folder[Symbol.asyncDispose]();
});

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function spawnHone(...args: string[]): ChildProcess {
  const env = { ...process.env, HONE_STATE_DIR: project.state, NO_COLOR: "1" };
  return spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

async function ended(child: ChildProcess): Promise<Ended> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (output += String(data)));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

const hone = (...args: string[]) => ended(spawnHone(...args));

/** Waits until the stack is up; fails with the output if its process ends before. */
async function untilUp(up: Promise<Ended>): Promise<StackRecord> {
  const failed = up.then(({ code, output }) => assert.fail(`hone up ended with ${code}: ${output}`));
  return Promise.race([
    eventually("the stack to be up", () => readStack(project), { deadlineMs: UP_MS }),
    failed,
  ]);
}

/** All processes of a stack: services, bus, database. */
function processesOf(stack: StackRecord): ProcessIdentity[] {
  const pids = Object.values(stack.services).map(({ pid }) => pid);
  const read = (path: string) => Number.parseInt(readFileSync(join(project.state, path), "utf8"), 10);
  pids.push(read("nats/nats-server.pid"), read("postgres/data/postmaster.pid"));
  return pids.map((pid) => identifyProcess(pid)).filter((identity) => identity !== undefined);
}

async function inDatabase(url: string, statement: SQL): Promise<Record<string, unknown>[]> {
  const database = await openDatabase({ url, schema: "public", maxConnections: 1 });
  try {
    return [...(await query(database, (db) => db.execute(statement)))];
  } finally {
    await database.close();
  }
}

/** Changes the database to that of an earlier version, which had only one role, and adds a row. */
async function leaveDatabaseToSuperuser(): Promise<void> {
  await using server = await launchPostgres({ folder: join(project.state, "postgres") });
  await inDatabase(server.url, sql`create table trainer.kept as select 7 as value`);
  await inDatabase(
    server.url,
    sql`do $$ declare statement text;
      begin
        for statement in
          select format('alter table %s owner to hone', oid::regclass) from pg_class
          where relnamespace::regnamespace::text in ('trainer', 'tracer') and relkind in ('r', 'S')
            and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'a')
        loop execute statement; end loop;
      end $$`,
  );
  await inDatabase(server.url, sql`alter schema trainer owner to hone`);
  await inDatabase(server.url, sql`alter schema tracer owner to hone`);
  await inDatabase(server.url, sql`drop owned by trainer, tracer`);
  await inDatabase(server.url, sql`drop role trainer, tracer`);
}

describe("hone", () => {
  test("status, evaluations and down report that no stack is running", async () => {
    const status = await hone("status");
    assert.deepEqual([status.code, /no stack is running/.test(status.output)], [3, true]);
    const evaluated = await hone("evaluations");
    assert.deepEqual([evaluated.code, /start one with hone up/.test(evaluated.output)], [1, true]);
    assert.equal((await hone("down")).code, 0);
  });

  test("up starts everything, status shows it, a second up is refused, and Ctrl-C stops everything", async () => {
    const up = spawnHone("up");
    const upEnded = ended(up);
    const stack = await untilUp(upEnded);
    assert.deepEqual(Object.keys(stack.services), [...SERVICES]);
    const processes = processesOf(stack);
    assert.equal(processes.length, SERVICES.length + 2);

    const status = await hone("status");
    assert.equal(status.code, 0, status.output);
    assert.equal(status.output.match(/ ready( |$)/gm)?.length, SERVICES.length + 2, status.output);
    assert.match(status.output, /no runs/);

    const second = await hone("up");
    assert.deepEqual([second.code, /already running in /.test(second.output)], [1, true]);

    up.kill("SIGINT");
    assert.equal((await upEnded).code, 0);
    assert.deepEqual(processes.filter(isRunning), []);
    assert.equal(readStack(project), undefined);
  });

  test("a killed service is restarted on its port, and SIGKILL of the supervisor leaves no process", async () => {
    const up = spawnHone("up");
    const upEnded = ended(up);
    const stack = await untilUp(upEnded);
    const dataset = stack.services.dataset;
    assert.ok(dataset !== undefined);
    process.kill(dataset.pid, "SIGKILL");
    const back = await eventually(
      "dataset to be back",
      () => {
        const now = readStack(project)?.services.dataset;
        return now !== undefined && now.pid !== dataset.pid ? now : undefined;
      },
      { deadlineMs: UP_MS },
    );
    assert.deepEqual([back.httpPort, back.restarts], [dataset.httpPort, 1]);

    const processes = processesOf(await untilUp(upEnded));
    up.kill("SIGKILL");
    assert.equal((await upEnded).code, null);
    await eventually("everything to be gone", () => !processes.some(isRunning), { deadlineMs: 30_000 });
  });

  test("the next start gives trainer and tracer the tables of an older version's database, with their rows", async () => {
    await leaveDatabaseToSuperuser();
    const detached = await hone("up", "--detach");
    assert.equal(detached.code, 0, detached.output);
    const rows = await inDatabase(
      readFileSync(databaseFileOf(project, OWNER), "utf8"),
      sql`select schemaname, count(*)::int as num_tables, array_agg(distinct tableowner)::text as owners,
          (select value from trainer.kept) as value
        from pg_tables where schemaname in ('trainer', 'tracer') group by schemaname order by schemaname`,
    );
    assert.deepEqual(
      rows.map(({ schemaname, owners, value }) => [schemaname, owners, value]),
      [
        ["tracer", "{tracer}", 7],
        ["trainer", "{trainer}", 7],
      ],
    );
    for (const { num_tables } of rows) assert.ok(Number(num_tables) >= 5);
    assert.equal((await hone("down")).code, 0);
  });

  test("the next start works even if the usual ports are taken, and keeps the streams, one with another size", async () => {
    process.env.HONE_EPISODES_MAX_BYTES = "64MB";
    const wrong = await hone("up", "--detach");
    assert.deepEqual([wrong.code, /HONE_EPISODES_MAX_BYTES/.test(wrong.output)], [1, true], wrong.output);
    process.env.HONE_EPISODES_MAX_BYTES = String(64 * 1024 ** 2);
    // Takes the well-known ports, unless other servers have them already.
    const squatters = [4222, 5432].map((port) =>
      createServer()
        .on("error", () => undefined)
        .listen(port, "127.0.0.1"),
    );
    try {
      const detached = await hone("up", "--detach");
      assert.equal(detached.code, 0, detached.output);
      const { natsUrl } = readStack(project) ?? {};
      assert.ok(natsUrl !== undefined);
      const bus = await connectBus({ url: natsUrl, name: "test" });
      const { config } = await bus.manager.streams.info(StreamName.episodes);
      assert.equal(config.max_bytes, 64 * 1024 ** 2);
      await bus.close();
      const invalid = await hone("run", join(import.meta.dirname, "no-such.yaml"));
      assert.deepEqual([invalid.code, /no-such\.yaml/.test(invalid.output)], [1, true]);
      const down = await hone("down");
      assert.deepEqual([down.code, /stopped \(process/.test(down.output)], [0, true]);
    } finally {
      delete process.env.HONE_EPISODES_MAX_BYTES;
      for (const squatter of squatters) squatter.close();
    }
  });

  test("a tracer's port that another program takes during the start is replaced by another one", async () => {
    const port = await freePort();
    const other = createServer().listen(port, LOOPBACK);
    const ports = [port];
    try {
      await using stack = await startStack(project, {
        signal: AbortSignal.timeout(UP_MS),
        replicas: parseReplicas("", "a test"),
        choosePort: async () => ports.pop() ?? (await freePort()),
      });
      assert.deepEqual(ports, []);
      assert.notEqual(new URL(stack.pageUrl).port, String(port));
    } finally {
      other.close();
    }
  });

  test("refuses unknown options, and suggests the nearest one", async () => {
    const { code, output } = await hone("up", "--detahc");
    assert.deepEqual([code, /did you mean --detach\?/.test(output)], [1, true]);
  });

  test("has help for every command", async () => {
    for (const command of [
      "start",
      "up",
      "down",
      "run",
      "status",
      "eval",
      "evaluations",
      "chat",
      "export",
      "validate",
      "debug",
      "doctor",
    ]) {
      const { code, output } = await hone(command, "--help");
      assert.equal(code, 0);
      assert.match(output, new RegExp(`USAGE.*hone ${command}`));
    }
  });
});
