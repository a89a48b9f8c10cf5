/** The trainer's process gets SIGKILL at each critical moment, with real servers and the real engine. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { KillableTrainer, runFile } from "./testing/trainer-process.ts";
import { startTrainerWorld } from "./testing/trainer-world.ts";

const STEPS = 4;
const RUN_DEADLINE_MS = 60_000;

test("a run whose trainer is killed repeatedly trains the same as an undisturbed run", {
  timeout: 180_000,
}, async () => {
  await using world = await startTrainerWorld();
  const { sql, peers, events, servers, endOf } = world;
  const trainer = new KillableTrainer(process, servers);
  trainer.start();
  try {
    const fileOf = (changes: Record<string, unknown>) =>
      runFile({
        warmStart: { kind: "sft", policy: "random_legal", tasks: 8, epochs: 1, batchSize: 4 },
        trainer: {
          steps: STEPS,
          epochs: 2,
          minibatches: 2,
          optimizer: { kind: "adamw", learningRate: 0.01 },
          checkpoint: { every: 2, keep: 2 },
          ...changes,
        },
      });
    const submit = async (changes: Record<string, unknown> = {}) => world.submit(await fileOf(changes));
    const outcomeOf = async (runId: string) => ({
      digest: (await sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest,
      ledger: (
        await sql`select slot, version, reward from trainer.ledger where run_id = ${runId} order by slot`
      ).map(({ slot, version, reward }) => [slot, version, reward]),
      steps: events.of("stepCompleted", runId).map(({ step }) => step),
      // What a row of the chain says of its step, and the records of trained tokens, each once.
      contents: (
        await sql`select chain->>'contentDigest' as digest from trainer.steps where run_id = ${runId} order by version`
      ).map(({ digest }) => digest),
      records: (
        await sql`select slot, version, md5(record) as digest from trainer.token_records where run_id = ${runId} order by slot`
      ).map(({ slot, version, digest }) => [slot, version, digest]),
      gradients: (
        await sql`select version, summary from trainer.gradients where run_id = ${runId} order by version`
      ).map(({ version, summary }) => [version, summary]),
    });

    const calm = await submit();
    await endOf(calm);
    const expected = await outcomeOf(calm);
    assert.equal(expected.ledger.length, 8 + STEPS * 16);
    assert.equal(expected.contents.length, 1 + STEPS);
    assert.equal(expected.gradients.length, STEPS);
    assert.ok(expected.records.length > STEPS);

    let runId = await submit();
    const phaseOf = (phase: RunPhase, step: number) => () =>
      events.of("phaseChanged", runId).some((event) => event.phase === phase && event.step === step);
    const endOfStep = (wanted: number) => () =>
      events.of("stepCompleted", runId).some(({ step }) => step === wanted);
    const moments: Array<[string, () => boolean]> = [
      ["its acceptance", () => events.of("accepted", runId).length > 0],
      ["its warm start", phaseOf(RunPhase.WARM_START, 0)],
      ["the commit of version 0", phaseOf(RunPhase.COMMIT, 0)],
      ["the rollouts of step 1", phaseOf(RunPhase.ROLLOUT, 1)],
      ["the training of step 2", phaseOf(RunPhase.TRAIN, 2)],
      ["the commit of step 2", phaseOf(RunPhase.COMMIT, 2)],
      ["the end of step 3", endOfStep(3)],
      ["the commit of the last step", phaseOf(RunPhase.COMMIT, STEPS)],
    ];
    for (const [moment, hasCome] of moments) {
      await eventually(moment, hasCome, { deadlineMs: RUN_DEADLINE_MS });
      await trainer.killAndRestart();
    }
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    assert.equal(trainer.kills, moments.length);
    assert.deepEqual(await outcomeOf(runId), expected);
    const twice = peers.executed.filter((slot, i) => peers.executed.indexOf(slot) !== i);
    // Both runs have the same slots, so each slot is executed twice in all, once for each run.
    assert.equal(twice.length, peers.executed.length / 2, "a rollout was made again");

    // The optimizer is saved only with versions 0 and 3, so the first two steps are replayed after the trainer dies.
    runId = await submit({ stateEvery: 3 });
    await eventually("the end of step 2", endOfStep(2), { deadlineMs: RUN_DEADLINE_MS });
    await trainer.killAndRestart();
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    // Its settings are others, and a row of the chain says so.
    const { contents, ...outcome } = await outcomeOf(runId);
    const { contents: _, ...wanted } = expected;
    assert.deepEqual(outcome, wanted);
    assert.equal(contents.length, 1 + STEPS);
    assert.equal(peers.executed.length, 3 * expected.ledger.length, "a rollout was made again");

    // While no trainer runs, one thousandth of the optimizer's moments is changed.
    runId = await submit();
    await eventually("the end of step 1", endOfStep(1), { deadlineMs: RUN_DEADLINE_MS });
    await trainer.kill();
    const [row] = await sql`select state_folder, state_files from trainer.runs where run_id = ${runId}`;
    const file = path.join(servers.stateDir, row?.state_folder, "optimizer.safetensors");
    const bytes = await readFile(file);
    for (let at = bytes.length - 4; at > bytes.length / 2; at -= 4_000) bytes.writeFloatLE(0.25, at);
    await writeFile(file, bytes);
    trainer.start();
    const { phase, reason } = await endOf(runId);
    assert.equal(phase, RunPhase.FAILED);
    const found = createHash("sha256").update(bytes).digest("hex");
    for (const part of [file, row?.state_files["optimizer.safetensors"], found]) {
      assert.ok(reason.includes(part), reason);
    }
  } finally {
    await trainer.kill();
  }
});
