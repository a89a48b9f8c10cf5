/**
 * The six services on a bus where each has its own account, as in the chart. If one account lacks an export or another an
 * import, a request stays without an answer; only a run of all services shows that.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { deadline, runIdOf } from "@hone/core";
import { type Child, logTail, type RunningNats, type RunningServer, spawnChild } from "@hone/embedded";
import {
  askHealth,
  type Bus,
  busAccounts,
  connectBus,
  followOrdered,
  inboxPrefixOf,
  ServiceName,
  StreamName,
  StreamsRole,
  subjects,
  usersIn,
} from "@hone/messaging";
import { type RunEvent, RunEventSchema } from "@hone/proto-gen/run";
import { eventually, startNats, startPostgres, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import postgres from "postgres";
import { publishRequest } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY } from "../support/stack.ts";

const READY_DEADLINE_MS = 180_000;
const RUN_DEADLINE_MS = 300_000;
const GRACE_MS = 10_000;
const ROW_KEEPERS: readonly string[] = [ServiceName.trainer, ServiceName.tracer];
const RUN = {
  name: "apart",
  steps: 2,
  tasksPerStep: 2,
  minibatches: 1,
  warmStartTasks: 8,
  evalTasks: 2,
};

describe("six services with an account each", () => {
  let folder: TemporaryFolder;
  let nats: RunningNats;
  let database: RunningServer;
  let client: Bus;
  const services = new Map<string, Child>();
  const inFolder = (...names: string[]) => path.join(folder.path, ...names);

  before(async () => {
    folder = await temporaryFolder("accounts");
    await mkdir(inFolder("state"));
    const accounts = busAccounts();
    const [first, ...others] = usersIn(accounts);
    assert.ok(first !== undefined);
    [nats, database] = await Promise.all([
      startNats({ folder: inFolder("nats"), users: [first, ...others], accounts }),
      startPostgres({ folder: inFolder("postgres") }),
    ]);
    for (const name of Object.values(ServiceName)) services.set(name, await startService(name));
    client = await connectBus({ url: nats.urlOf("client"), name: "test" });
  });
  after(async () => {
    await client?.close();
    await Promise.all([...services.values()].map((service) => service.stop({ graceMs: GRACE_MS })));
    await Promise.all([nats?.stop(), database?.stop()]);
    await folder?.[Symbol.asyncDispose]();
  });

  test("find the streams that the trainer creates, and become ready", async () => {
    for (const name of Object.values(ServiceName)) {
      const isReady = () =>
        (JSON.parse(readFileSync(inFolder(`${name}.json`), "utf8")) as { pid: number }).pid ===
        services.get(name)?.pid;
      await eventually(`${name} to be ready`, isReady, { deadlineMs: READY_DEADLINE_MS }).catch(fail);
    }
  });

  test("answer requests of the client, the trainer and the tracer", async () => {
    for (const user of ["client", "trainer", "tracer"] as const) {
      const bus = await connect(user);
      // A busy machine answers late.
      await eventually(
        `every service to answer ${user}`,
        async () => (await askHealth(bus, { timeoutMs: 10_000 })).silent.length === 0,
        { deadlineMs: 60_000 },
      );
      await bus.close();
    }
  });

  test("train a run that a client publishes, and report how it ended", async () => {
    const sequence = await publishRequest(client, JSON.stringify(await lakeRun(RUN)));
    const events = await eventsOf(runIdOf(RUN.name, sequence)).catch(fail);
    const last = events.at(-1)?.kind;
    assert.equal(last?.case, "ended");
    const steps = events.filter(({ kind }) => kind.case === "stepCompleted");
    assert.equal(steps.length, RUN.steps, logs());
    // The tracer reads episodes and events with its own consumers.
    const sql = postgres(database.url, { max: 1 });
    try {
      for (const table of ["rollouts", "steps"]) {
        const isThere = async () =>
          (await sql`select 1 from ${sql(`tracer.${table}`)} where run_id = ${runIdOf(RUN.name, sequence)}`)
            .length > 0;
        await eventually(`the tracer to have ${table}`, isThere, { deadlineMs: 60_000 }).catch(fail);
      }
    } finally {
      await sql.end({ timeout: 5 });
    }
    const answer = await client.connection.request(
      subjects.runControl("status", runIdOf(RUN.name, sequence)),
      "",
      { timeout: 5_000 },
    );
    assert.ok(answer.data.length > 0);
  });

  test("make no request that the bus refuses", () => {
    const lines = readFileSync(inFolder("nats", "nats-server.log"), "utf8").split("\n");
    assert.deepEqual(
      lines.filter((line) => /Violation/i.test(line)),
      [],
    );
  });

  const connect = (user: ServiceName | "client") =>
    connectBus({ url: nats.urlOf(user), name: "test", user, inboxPrefix: inboxPrefixOf(user) });

  async function eventsOf(runId: string): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    await deadline(`the end of ${runId}`, RUN_DEADLINE_MS, async (signal) => {
      const following = followOrdered(client, RunEventSchema, {
        stream: StreamName.events,
        filter: subjects.event("*", "*"),
        signal,
      });
      for await (const { message } of following) {
        if (message.kind.case === "refused") assert.fail(JSON.stringify(message.kind.value.problems));
        if (message.runId !== runId) continue;
        events.push(message);
        if (message.kind.case === "ended") return;
      }
    });
    return events;
  }

  function startService(name: ServiceName): Promise<Child> {
    return spawnChild({
      name,
      command: process.execPath,
      args: [path.join(REPOSITORY, "services", name, "src", "main.ts")],
      cwd: REPOSITORY,
      env: {
        ...process.env,
        HONE_NATS_URL: nats.urlOf(name),
        HONE_NATS_INBOX_PREFIX: inboxPrefixOf(name),
        HONE_STREAMS: name === ServiceName.trainer ? StreamsRole.make : StreamsRole.await,
        ...(ROW_KEEPERS.includes(name) && { HONE_DATABASE_URL: database.url }),
        HONE_STATE_DIR: inFolder("state"),
        HONE_FILES: inFolder("state"),
        HONE_HTTP_HOST: "127.0.0.1",
        HONE_HTTP_PORT: "0",
        HONE_READY_FILE: inFolder(`${name}.json`),
        HONE_INSTANCE_ID: `${name}-0`,
        HONE_TRACER_TOKEN: "0123456789abcdef0123456789abcdef",
        HONE_INFERENCE_API_KEY: "0123456789abcdef0123456789abcdef",
      },
      logFile: inFolder("logs", `${name}.log`),
      graceMs: GRACE_MS,
    });
  }

  const logs = () =>
    [...services.keys()]
      .map((name) => `${name}:\n${logTail(inFolder("logs", `${name}.log`), 12)}`)
      .join("\n\n");

  function fail(error: unknown): never {
    throw new Error(logs(), { cause: error });
  }
});
