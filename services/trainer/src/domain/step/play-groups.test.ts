import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { newRoot, tenure } from "../../testing/memory-tenure.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";

const STEPS = 4;
/** Distinct tasks of the world's training split. */
const TASKS = 5;

/** A run of four steps, each of two tasks with two rollouts, to its end. */
async function runWith(algorithm: Record<string, unknown>, change?: (world: MemoryWorld) => void) {
  await using root = await newRoot("play-groups");
  const config = testConfig({
    algorithm,
    dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 99 } } },
    trainer: {
      steps: STEPS,
      optimizer: { kind: "adamw", learningRate: 0.1 },
      checkpoint: { every: 0, keep: 1 },
      eval: { every: 0 },
    },
  });
  const world = new MemoryWorld(testRun({ config }));
  change?.(world);
  const ending = await tenure(world, root.path);
  const steps = Array.from({ length: STEPS }, (_, i) => world.steps.get(i + 1)?.metrics ?? {});
  return { world, ending, steps };
}

describe("dynamic sampling", () => {
  test("plays batches until every group of the step teaches", async () => {
    const { ending, steps, world } = await runWith({ dynamicSampling: { maxBatches: 100 } });
    assert.equal(ending, "completed");
    assert.equal(world.ledger.size, STEPS * 4);
    for (const metrics of steps) {
      assert.equal(metrics["groups/used"], 2);
      assert.equal(metrics["groups/flat"], 0);
      const { "groups/played": played, "groups/filtered": filtered, "groups/surplus": surplus } = metrics;
      assert.equal(played, 2 + filtered! + surplus!);
      assert.equal(metrics.episodes, 2 * played!);
    }
    assert.ok(steps.some((metrics) => metrics["sampling/batches"]! > 1));
  });

  test("goes on in the next step with the task after the last one that was played", async () => {
    const { world, steps } = await runWith({ dynamicSampling: { maxBatches: 100 } });
    const played = steps.map((metrics) => metrics["groups/played"]!);
    const ends = played.map((_, i) => played.slice(0, i + 1).reduce((sum, count) => sum + count, 0));
    const recorded = ends.map((_, i) => world.taskVisits.find(({ step }) => step === i + 1)!.nextCursor);
    assert.deepEqual(recorded, ends);
    const ids = world.taskVisits.map(({ taskId }) => taskId);
    assert.equal(ids.length, ends.at(-1));
    assert.equal(new Set(ids.slice(0, TASKS)).size, TASKS);
    assert.deepEqual(ids.slice(TASKS), ids.slice(0, -TASKS), "the tasks come round in one order");
  });

  test("trains the groups that it has when it has played as many batches as it may", async () => {
    const { ending, steps, world } = await runWith({ dynamicSampling: { maxBatches: 1 } });
    assert.equal(ending, "completed");
    assert.deepEqual(
      steps.map((metrics) => metrics["sampling/batches"]),
      [1, 1, 1, 1],
    );
    const used = steps.map((metrics) => metrics["groups/used"]!);
    assert.ok(used.some((count) => count < 2));
    assert.equal(
      world.ledger.size,
      used.reduce((sum, count) => sum + 2 * count, 0),
    );
  });

  test("stops after the first batch whose rollouts all fail for one reason", async () => {
    const { ending, world } = await runWith({ dynamicSampling: {} }, (changed) => {
      changed.failureOf = () => ({ outcome: "agent_failed", reason: "no such module" });
    });
    assert.equal(ending, "failed");
    assert.equal(world.executions.size, 4);
  });

  test("leaves a run without it as it is", async () => {
    const { steps, world } = await runWith({});
    assert.deepEqual(world.taskVisits, []);
    for (const metrics of steps) {
      assert.equal(metrics.episodes, 4);
      assert.ok(!Object.keys(metrics).some((name) => /played|filtered|surplus|batches/.test(name)));
    }
  });
});
