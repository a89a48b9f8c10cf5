/**
 * In the middle of a run, the bus or the database is unavailable for a moment: the run waits, and ends like an undisturbed one.
 * A run does not wait for the tracer.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  connectBus,
  consumeBytes,
  DurableName,
  ensureTopology,
  publishBytes,
  StreamName,
  subjects,
} from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually, startNats, startPostgres, temporaryFolder } from "@hone/testing";
import postgres from "postgres";
import { startFakePeers } from "./testing/fake-peers.ts";
import { followEvents, runFile, startTrainer } from "./testing/trainer-process.ts";
import { startTrainerWorld } from "./testing/trainer-world.ts";

const RUN_DEADLINE_MS = 90_000;
/** Smaller than what a run of this file writes, and several times what one step writes. */
const SMALL_EPISODES_BYTES = 64 * 1024;

test("a run survives a restart of the bus and of the database", { timeout: 240_000 }, async () => {
  await using folder = await temporaryFolder("outage");
  const natsFolder = `${folder.path}/nats`;
  const postgresFolder = `${folder.path}/postgres`;
  let nats = await startNats({ folder: natsFolder });
  let database = await startPostgres({ folder: postgresFolder });
  const [natsPort, databasePort] = [Number(new URL(nats.url).port), Number(new URL(database.url).port)];
  const bus = await connectBus({ url: nats.url, name: "test" });
  await ensureTopology(bus);
  const peers = startFakePeers(bus);
  const ended = new AbortController();
  const events = followEvents(bus, ended.signal);
  const sql = postgres(database.url, { onnotice: () => undefined });
  const trainer = await startTrainer({ nats: nats.url, postgres: database.url, stateDir: folder.path });
  try {
    const text = await runFile({
      trainer: { steps: 6, minibatches: 2, optimizer: { kind: "adamw", learningRate: 0.01 } },
    });
    const submit = async () =>
      `small-${(await publishBytes(bus, subjects.runRequest(), text, undefined)).sequence}`;
    const endOf = (runId: string) =>
      eventually(`the end of ${runId}`, () => events.of("ended", runId)[0], { deadlineMs: RUN_DEADLINE_MS });
    const stepOf = (runId: string, step: number) =>
      eventually(
        `step ${step}`,
        () => events.of("stepCompleted", runId).some((event) => event.step === step),
        {
          deadlineMs: RUN_DEADLINE_MS,
        },
      );
    const digestOf = async (runId: string) =>
      (await sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest;

    const calm = await submit();
    await endOf(calm);

    const runId = await submit();
    await stepOf(runId, 1);
    await nats.stop();
    nats = await startNats({ folder: natsFolder, port: natsPort });
    await stepOf(runId, 3);
    await database.stop();
    database = await startPostgres({ folder: postgresFolder, port: databasePort });
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    assert.equal(await digestOf(runId), await digestOf(calm));
    const rows = await sql`select count(*)::int as n from trainer.ledger where run_id = ${runId}`;
    assert.equal(rows[0]?.n, 6 * 16);
  } finally {
    ended.abort();
    await trainer.stop();
    await peers.stop();
    await sql.end();
    await bus.close();
    await Promise.all([nats.stop(), database.stop()]);
  }
});

test("a run continues while the tracer cannot store anything, and reports what the tracer lost", {
  timeout: 240_000,
}, async () => {
  await using world = await startTrainerWorld();
  const { bus, events } = world;
  const trainer = await startTrainer(world.servers);
  const { config } = await bus.manager.streams.info(StreamName.episodes);
  await bus.manager.streams.update(StreamName.episodes, { ...config, max_bytes: SMALL_EPISODES_BYTES });
  let refused = 0;
  const tracer = consumeBytes(bus, {
    stream: StreamName.episodes,
    durable: DurableName.scoredEpisodes,
    filter: subjects.rolloutScored("*"),
    concurrency: 4,
    handle: () => {
      refused++;
      return Promise.reject(new Error("the database is away"));
    },
    onError: () => undefined,
  });
  try {
    const text = await runFile({
      trainer: { steps: 24, minibatches: 2, optimizer: { kind: "adamw", learningRate: 0.01 } },
    });
    const runId = await world.submit(text);
    const end = await world.endOf(runId, RUN_DEADLINE_MS);
    assert.equal(end.phase, RunPhase.COMPLETED);
    assert.ok(refused > 0, "the tracer must have begun");
    const lost = await eventually("what the tracer lost", () => events.of("rolloutsUnread", runId).at(-1));
    assert.ok(lost.rollouts > 0n);
    const { state } = await bus.manager.streams.info(StreamName.episodes);
    assert.ok(state.bytes <= SMALL_EPISODES_BYTES / 2, `${state.bytes} bytes wait for the tracer`);
  } finally {
    await trainer.stop();
    await tracer.stop();
  }
});
