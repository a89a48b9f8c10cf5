import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveRunConfig } from "@hone/config";
import { algorithmNames, runFileOf, settingNames, WORLDS } from "./run-files.ts";

describe("the run files of a comparison", () => {
  test("are valid for each algorithm on each world", async () => {
    const names = await algorithmNames();
    assert.ok(names.length >= 10, `${names.length} algorithms`);
    for (const world of WORLDS) {
      for (const name of names) resolveRunConfig(await runFileOf(world, name));
    }
  });

  test("take settings after plus signs, one after the other", async () => {
    const run = resolveRunConfig(await runFileOf("lake", "curriculum+stale-2+corrected"));
    assert.equal(run.name, "lake-curriculum-stale-2-corrected");
    assert.equal(run.trainer.maxStaleness, 2);
    assert.equal(run.algorithm.correction?.weight?.upper, 2);
    assert.equal(run.algorithm.advantage.kind, "reinforce_plus_plus");
    for (const setting of await settingNames()) resolveRunConfig(await runFileOf("lake", `grpo+${setting}`));
  });

  test("differ in their algorithm alone, and replace a kind with its options", async () => {
    const [grpo, ppo] = await Promise.all(["grpo", "ppo"].map((name) => runFileOf("lake", name)));
    assert.deepEqual(
      { ...ppo, name: "", rollout: 0, algorithm: 0, trainer: 0 },
      { ...grpo, name: "", rollout: 0, algorithm: 0, trainer: 0 },
    );
    const { algorithm, rollout } = resolveRunConfig(ppo);
    assert.equal(algorithm.advantage.kind, "gae");
    assert.deepEqual([rollout.tasksPerStep, rollout.groupSize, algorithm.loss.kind], [256, 1, "ppo_clip"]);
  });

  test("play as many rollouts in each step, a greedy baseline included", async () => {
    for (const [world, rollouts] of [
      ["lake", 256],
      ["slippery-lake", 128],
    ] as const) {
      for (const name of await algorithmNames()) {
        const { rollout, algorithm } = resolveRunConfig(await runFileOf(world, name));
        const ofTask = rollout.groupSize + (algorithm.advantage.kind === "remax" ? 1 : 0);
        assert.equal(rollout.tasksPerStep * ofTask, rollouts, `${name} on ${world}`);
      }
    }
  });
});
