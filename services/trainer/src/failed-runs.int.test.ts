/** Runs that fail and are resumed, with real servers and the real engine. */

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RunControl, request, StreamName, subjects } from "@hone/messaging";
import { ControlReplySchema, ControlRequestSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { KillableTrainer, runFile } from "./testing/trainer-process.ts";
import { startTrainerWorld, type TrainerWorld } from "./testing/trainer-world.ts";

const RUN_DEADLINE_MS = 60_000;
const TRAINER = { steps: 3, epochs: 2, minibatches: 2, optimizer: { kind: "adamw", learningRate: 0.01 } };

describe("a run that failed", { timeout: 240_000 }, () => {
  let world: TrainerWorld;
  let trainer: KillableTrainer;

  before(async () => {
    world = await startTrainerWorld();
    trainer = new KillableTrainer(process, world.servers);
    trainer.start();
  });
  after(async () => {
    await trainer?.kill();
    await world?.[Symbol.asyncDispose]();
  });

  async function submit(name: string, trainerKeys: Record<string, unknown> = {}): Promise<string> {
    return world.submit(await runFile({ name, trainer: { ...TRAINER, ...trainerKeys } }));
  }

  function endOf(runId: string, resumption = 0) {
    const find = () => world.events.of("ended", runId).find((end) => end.resumption === resumption);
    return eventually(`the end of ${runId}`, find, { deadlineMs: RUN_DEADLINE_MS });
  }

  function control(verb: RunControl, runId: string) {
    return request(
      world.bus,
      subjects.runControl(verb, runId),
      ControlRequestSchema,
      create(ControlRequestSchema, { runId }),
      ControlReplySchema,
      { timeoutMs: 5_000 },
    );
  }

  const failIn = (run: string, step: number) => {
    world.peers.failureOf = ({ runId, slot }) =>
      runId.startsWith(run) && slot?.step === step
        ? { outcome: "agent_failed", reason: `no such module (port ${40_000 + slot.task * 10 + slot.index})` }
        : undefined;
  };

  async function trainedOf(runId: string) {
    const run = await eventually(`the row of ${runId} to say that it is over`, async () => {
      const [row] =
        await world.sql`select version, state_digest, stage from trainer.runs where run_id = ${runId}`;
      return row?.stage === "active" ? undefined : row;
    });
    const ledger =
      await world.sql`select slot, version, reward, advantage from trainer.ledger where run_id = ${runId} order by slot`;
    return { ...run, ledger: ledger.map((row) => ({ ...row })) };
  }

  for (const stateEvery of [1, 3]) {
    test(`says why, and after it is resumed trains like a run that never failed, with a whole state every ${stateEvery} versions`, async () => {
      const calm = await submit(`calm-${stateEvery}`, { stateEvery });
      await endOf(calm);
      failIn("lost", 2);
      const runId = await submit(`lost-${stateEvery}`, { stateEvery });
      const end = await endOf(runId);
      assert.equal(end.phase, RunPhase.FAILED);
      assert.match(
        end.reason,
        /^all 16 rollouts of step 2 ended as agent_failed, for one reason: no such module \(port 40000\)/,
      );
      const { state } = await control(RunControl.status, runId);
      assert.deepEqual([state?.phase, state?.version, state?.endReason], [RunPhase.FAILED, 1, end.reason]);
      assert.equal(state?.troubles?.outcomes[0]?.count, 16);
      const failed = await trainedOf(runId);
      assert.equal(failed.ledger.length, 16);
      const jobs = await world.bus.manager.streams.info(StreamName.jobs);
      assert.equal(jobs.state.messages, 0);
      const states = await readdir(`${world.servers.stateDir}/runs/${runId}/state`);
      assert.ok(
        states.every((name) => !name.startsWith(".")),
        states.join(),
      );

      // The cause is still there, so the run fails again on rollouts made now. A trainer that died here would decide the same.
      assert.equal((await control(RunControl.resume, runId)).error, "");
      await eventually(
        "the second try",
        () => world.peers.executed.length > 0 && world.events.of("resumed", runId)[0],
      );
      await trainer.killAndRestart();
      assert.equal((await endOf(runId, 1)).phase, RunPhase.FAILED);
      assert.deepEqual(await trainedOf(runId), failed);

      world.peers.failureOf = () => undefined;
      const resumed = await control(RunControl.resume, runId);
      assert.equal(resumed.error, "");
      assert.equal(resumed.state?.resumption, 2);
      assert.equal((await endOf(runId, 2)).phase, RunPhase.COMPLETED);
      assert.deepEqual(await trainedOf(runId), await trainedOf(calm));
      assert.deepEqual(
        world.events.of("stepCompleted", runId).map(({ step }) => step),
        [1, 2, 3],
      );
      await eventually("the removal of every episode", async () => {
        return (await world.bus.manager.streams.info(StreamName.episodes)).state.messages === 0;
      });
    });
  }

  test("is not resumed while another run of the same name is unfinished", async () => {
    failIn("twice", 1);
    const first = await submit("twice");
    await endOf(first);
    const hold = Promise.withResolvers<void>();
    world.peers.failureOf = () => undefined;
    world.peers.beforeEpisode = ({ runId }) => (runId.startsWith("twice") ? hold.promise : Promise.resolve());
    const second = await submit("twice");
    await eventually("the second to be accepted", () => world.events.of("accepted", second)[0]);
    assert.match(
      (await control(RunControl.resume, first)).error,
      new RegExp(`while ${second}, of the same name`),
    );
    hold.resolve();
    world.peers.beforeEpisode = async () => undefined;
    await endOf(second);
  });

  test("is not resumed if it was cancelled or completed", async () => {
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = ({ runId }) =>
      runId.startsWith("stopped") ? hold.promise : Promise.resolve();
    const stopped = await submit("stopped");
    await eventually("its acceptance", () => world.events.of("accepted", stopped)[0]);
    await control(RunControl.cancel, stopped);
    await endOf(stopped);
    hold.resolve();
    world.peers.beforeEpisode = async () => undefined;
    const done = await submit("done");
    await endOf(done);
    for (const [runId, stage] of [
      [stopped, "cancelled"],
      [done, "completed"],
    ] as const) {
      await eventually(
        "the row's end",
        async () => ((await trainedOf(runId)) as { stage?: string }).stage === stage,
      );
      assert.match(
        (await control(RunControl.resume, runId)).error,
        new RegExp(`is over \\(${stage}\\), and only a paused or a failed run`),
      );
    }
  });
});
