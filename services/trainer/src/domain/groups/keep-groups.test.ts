import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { crashConfig } from "../../testing/crash-kinds.ts";
import { newRoot, tenure } from "../../testing/memory-tenure.ts";
import { dieAnywhere, RECORDED, record, replayOf } from "../../testing/recorded-run.ts";
import { RunFolders } from "../state/run-folders.ts";
import { readKeptStep, writeKeptStep } from "./kept-step.ts";

const TRAINER = { stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } };
const CURRICULUM = { kind: "success", chance: 0.5 };

/** Runs that keep their rollouts. */
const KINDS = {
  "a run": () => crashConfig(undefined, { ...TRAINER, keepRollouts: true }),
  "a run that plays until its groups teach": () =>
    crashConfig(
      undefined,
      { ...TRAINER, steps: 2, keepRollouts: true },
      { dynamicSampling: { metric: "success" } },
      CURRICULUM,
    ),
  "an asynchronous run": () =>
    crashConfig(undefined, { ...TRAINER, steps: 5, maxStaleness: 2, keepRollouts: true }),
};

describe("a replay", () => {
  for (const [name, configOf] of Object.entries(KINDS)) {
    test(`of ${name} makes the same weights without playing anything`, async () => {
      await using root = await newRoot("replay");
      const recorded = await record(root.path, configOf());
      const world = replayOf(configOf());
      await tenure(world, root.path);
      assert.equal(world.run.stateDigest, recorded.run.stateDigest);
      assert.deepEqual([...world.ledger].sort(), [...recorded.ledger].sort());
      const played = [...world.executions.keys()].filter((slot) => slot.startsWith("train."));
      assert.deepEqual(played, []);
    });
  }

  test("makes the same weights after a death between any two effects", async () => {
    const config = KINDS["a run"]();
    await using root = await newRoot("replay");
    const recorded = await record(root.path, config);
    const worlds = await dieAnywhere(() => replayOf(config), root.path);
    assert.ok(worlds.size > 20, `${worlds.size} effects`);
    for (const [where, { run }] of worlds) assert.equal(run.stateDigest, recorded.run.stateDigest, where);
  });

  test("fails with the file that is damaged", async () => {
    const config = KINDS["a run"]();
    await using root = await newRoot("replay");
    await record(root.path, config);
    const rollouts = path.join(root.path, "runs", RECORDED, "rollouts");
    const [second] = (await readdir(rollouts)).filter((name) => name.startsWith("2-"));
    const file = path.join(rollouts, second!, "step.json.gz");
    await writeFile(file, (await readFile(file)).subarray(0, 100));
    await assert.rejects(tenure(replayOf(config), root.path), new RegExp(`${file}.*cannot be read`));
  });
});

describe("the file of a step's rollouts", () => {
  test("gives back every number as it was", async () => {
    await using root = await newRoot("replay");
    await record(root.path, KINDS["an asynchronous run"]());
    const folders = new RunFolders(root.path, RECORDED);
    const kept = await folders.keptSteps();
    assert.deepEqual([...kept.keys()].sort(), [1, 2, 3, 4, 5]);
    const file = path.join(folders.absolute(kept.get(3)!), "step.json.gz");
    const step = await readKeptStep(await readFile(file), file);
    const third = { ...step.played[0]!.rollouts[0]!, samples: [sampleOf([Math.fround(-1 / 3), -1e-30])] };
    const written = { ...step, played: [{ ...step.played[0]!, rollouts: [third] }], trained: [] };
    const { trace: _, ...read } = (await readKeptStep(await writeKeptStep(written), file)).played[0]!
      .rollouts[0]!;
    const { trace: _of, ...expected } = third;
    assert.deepEqual(read, expected);
  });
});

function sampleOf(logprobs: readonly number[]) {
  return {
    tokenIds: Uint32Array.of(1, 2, 3),
    lossMask: Uint8Array.of(0, 1, 1),
    logprobs: Float32Array.from(logprobs),
    versions: [{ version: 0, tokenCount: 2 }],
  };
}
