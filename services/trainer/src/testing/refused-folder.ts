/** A run whose state folder the operating system refuses for a while, for tests of the different causes. */

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { BucketName, openBucket } from "@hone/messaging";
import { RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { KillableTrainer, runFile } from "./trainer-process.ts";
import { startTrainerWorld } from "./trainer-world.ts";

const STEPS = 4;
const RUN_DEADLINE_MS = 60_000;

export interface Refusal {
  readonly stateDir: string;
  readonly refuse: (runId: string) => Promise<unknown>;
  readonly allow: (runId: string) => Promise<unknown>;
  /** Matches what the run's status says meanwhile, beside the folder. */
  readonly says: RegExp;
  /** See {@link KillableTrainer.start}. */
  readonly logFile?: string;
  readonly uid?: number;
}

/** Compares an undisturbed run with one whose folder is refused in its second step until its status says so. */
export async function runThroughRefusal({ stateDir, refuse, allow, says, ...start }: Refusal): Promise<void> {
  await using world = await startTrainerWorld({ stateDir });
  const { bus, sql, peers, endOf } = world;
  const trainer = new KillableTrainer(process, world.servers);
  trainer.start(start);
  try {
    const text = await runFile({
      trainer: {
        steps: STEPS,
        minibatches: 2,
        optimizer: { kind: "adamw", learningRate: 0.01 },
        checkpoint: { every: 1, keep: 2 },
      },
    });
    const digestOf = async (runId: string) =>
      (await sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest;

    const calm = await world.submit(text);
    await endOf(calm);

    const isRefused = Promise.withResolvers<void>();
    peers.beforeEpisode = ({ slot }) => (slot?.step === 2 ? isRefused.promise : Promise.resolve());
    const runId = await world.submit(text);
    const isAtStep2 = () => peers.executed.filter((slot) => slot.startsWith("train.2.")).length > 16;
    await eventually("the rollouts of step 2", isAtStep2, { deadlineMs: RUN_DEADLINE_MS });
    await refuse(runId);
    isRefused.resolve();
    const states = await openBucket(bus, BucketName.runState, RunStateSchema);
    const waits = async () => {
      const state = (await states.get(runId))?.value;
      return state?.waitingOwner === "you" ? state : undefined;
    };
    const { waitingFor } = await eventually("the run to wait for somebody", waits, {
      deadlineMs: RUN_DEADLINE_MS,
    });
    assert.ok(waitingFor.includes(path.join(stateDir, "runs", runId)), waitingFor);
    assert.match(waitingFor, says);
    await allow(runId);
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    assert.ok(trainer.isAlive, "the same trainer");
    assert.equal(await digestOf(runId), await digestOf(calm));
    const rows = await sql`select count(*)::int as n from trainer.ledger where run_id = ${runId}`;
    assert.equal(rows[0]?.n, STEPS * 16);
    for (const folder of ["state", "checkpoints"]) {
      const names = await readdir(path.join(stateDir, "runs", runId, folder));
      assert.deepEqual(
        names.filter((name) => name.startsWith(".")),
        [],
      );
    }
  } finally {
    await trainer.kill();
  }
}
