/** The stream of episodes is too small for the episodes that a run keeps in it, or for those of a single step. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BucketName, openBucket, StreamName } from "@hone/messaging";
import { RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { runFile, startTrainer } from "./testing/trainer-process.ts";
import { startTrainerWorld } from "./testing/trainer-world.ts";

const RUN_DEADLINE_MS = 120_000;
const STEPS = 10;
const ROLLOUTS = 16;
/** The smallest value that is allowed. */
const SMALL_BYTES = 4 * 1024 ** 2;
const LARGE_BYTES = 64 * 1024 ** 2;
/** Ten steps of sixteen such episodes do not fit into the small stream; one step takes a ninth of it. */
const EPISODE_BYTES = 30_000;
/** One step of sixteen such episodes does not fit into the stream. */
const HUGE_EPISODE_BYTES = 300_000;

test("a run continues when its steps fill the stream of episodes, and says so when a single step does", {
  timeout: 480_000,
}, async () => {
  await using world = await startTrainerWorld();
  const { bus, sql, peers, servers } = world;
  const start = (maxBytes: number) => startTrainer(servers, { HONE_EPISODES_MAX_BYTES: String(maxBytes) });
  const sizeOf = async () => (await bus.manager.streams.info(StreamName.episodes)).config.max_bytes;
  let trainer = await start(LARGE_BYTES);
  try {
    const text = await runFile({
      trainer: {
        steps: STEPS,
        minibatches: 2,
        stateEvery: 100,
        optimizer: { kind: "adamw", learningRate: 0.01 },
      },
    });
    const submit = async (paddingBytes: number) => {
      peers.paddingBytes = paddingBytes;
      return world.submit(text);
    };
    const endOf = async (runId: string) => {
      const end = await world.endOf(runId, RUN_DEADLINE_MS);
      assert.equal(end.phase, RunPhase.COMPLETED, end.reason);
      const [row] =
        await sql`select state_digest, recovery_version, epoch from trainer.runs where run_id = ${runId}`;
      const [trained] = await sql`select count(*)::int as n from trainer.ledger where run_id = ${runId}`;
      assert.equal(trained?.n, STEPS * ROLLOUTS);
      return { digest: row?.state_digest, wholeAt: row?.recovery_version, epoch: row?.epoch };
    };

    const wide = await endOf(await submit(EPISODE_BYTES));
    assert.equal(wide.wholeAt, 0);

    await trainer.stop();
    trainer = await start(SMALL_BYTES);
    assert.equal(await sizeOf(), SMALL_BYTES);
    const narrow = await endOf(await submit(EPISODE_BYTES));
    assert.equal(narrow.digest, wide.digest);
    assert.ok(narrow.wholeAt > 0, "no state was written before it was due");
    assert.equal(narrow.epoch, wide.epoch, "it was taken up once more to make room");

    const runId = await submit(HUGE_EPISODE_BYTES);
    const states = await openBucket(bus, BucketName.runState, RunStateSchema);
    const state = await eventually(
      "the status to name the stream and its size",
      async () => {
        const found = (await states.get(runId))?.value;
        return found?.waitingFor.includes("HONE_EPISODES_MAX_BYTES") ? found : undefined;
      },
      { deadlineMs: RUN_DEADLINE_MS },
    );
    assert.match(
      state.waitingFor,
      /of 16 rollouts of step 1: EPISODES is full \(it holds \d+ bytes of at most 4194304\).*start the trainer with HONE_EPISODES_MAX_BYTES above 4194304/,
    );
    assert.equal(state.waitingOwner, "you");
    await trainer.stop();
    trainer = await start(LARGE_BYTES);
    assert.equal((await endOf(runId)).digest, wide.digest);
  } finally {
    await trainer.stop();
  }
});
