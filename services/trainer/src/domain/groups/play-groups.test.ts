import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { Death, newRoot, tenure } from "../../testing/memory-tenure.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";

const STEPS = 4;
/** Distinct tasks of the world's training split. */
const TASKS = 5;

/** The parts of a run file that a test changes. */
interface Changes {
  readonly algorithm?: Record<string, unknown>;
  readonly rollout?: Record<string, unknown>;
}

/** A world for a run of four steps, each of two tasks with two rollouts. */
function worldOf({ algorithm = {}, rollout = {} }: Changes): MemoryWorld {
  const config = testConfig({
    algorithm,
    rollout: { tasksPerStep: 2, groupSize: 2, ...rollout },
    dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 99 } } },
    trainer: {
      steps: STEPS,
      optimizer: { kind: "adamw", learningRate: 0.1 },
      checkpoint: { every: 0, keep: 1 },
      eval: { every: 0 },
    },
  });
  return new MemoryWorld(testRun({ config }));
}

/** Such a run to its end. */
async function runWith(changes: Changes, change?: (world: MemoryWorld) => void) {
  await using root = await newRoot("play-groups");
  const world = worldOf(changes);
  change?.(world);
  const ending = await tenure(world, root.path);
  const steps = Array.from({ length: STEPS }, (_, i) => world.steps.get(i + 1)?.metrics ?? {});
  return { world, ending, steps };
}

describe("dynamic sampling", () => {
  test("plays batches until every group of the step teaches", async () => {
    const { ending, steps, world } = await runWith({ algorithm: { dynamicSampling: { maxBatches: 100 } } });
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
    const { world, steps } = await runWith({ algorithm: { dynamicSampling: { maxBatches: 100 } } });
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
    const { ending, steps, world } = await runWith({ algorithm: { dynamicSampling: { maxBatches: 1 } } });
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
    const { ending, world } = await runWith({ algorithm: { dynamicSampling: {} } }, (changed) => {
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

const REDUNDANCY = { redundancy: { tasks: 1, rollouts: 2 } };

describe("redundancy", () => {
  test("trains as many rollouts as a step should have, and counts the others", async () => {
    const { ending, world, steps } = await runWith({ rollout: REDUNDANCY });
    assert.equal(ending, "completed");
    assert.equal(world.ledger.size, STEPS * 4);
    for (const metrics of steps) {
      assert.equal(metrics.episodes, 4);
      assert.equal(metrics["rollouts/unneeded"], 3 * 4 - 4);
    }
  });

  test("trains those that come first in the stream", async () => {
    // The first two rollouts of task 0 are lost: the next two come first.
    const { world } = await runWith({ rollout: REDUNDANCY }, (changed) => {
      changed.failureOf = ({ task, index }) =>
        task === 0 && index < 2 ? { outcome: "infra_failed", reason: "lost" } : undefined;
    });
    const ofFirstTask = [...world.ledger.keys()].filter((slot) => slot.startsWith("train.2.0."));
    assert.deepEqual(ofFirstTask.sort(), ["train.2.0.2", "train.2.0.3"]);
  });

  test("works together with dynamic sampling", async () => {
    const { world, steps } = await runWith({
      rollout: REDUNDANCY,
      algorithm: { dynamicSampling: { maxBatches: 100 } },
    });
    assert.equal(world.ledger.size, STEPS * 4);
    const asked = steps.map((metrics) => metrics["groups/played"]! + metrics["sampling/batches"]!);
    const recorded = [1, 2, 3, 4].map(
      (step) => world.taskVisits.find((visit) => visit.step === step)?.nextCursor,
    );
    assert.deepEqual(
      recorded,
      asked.map((_, i) => asked.slice(0, i + 1).reduce((sum, count) => sum + count, 0)),
    );
  });

  test("chooses the same rollouts from the stored stream when the process dies after they have arrived", async () => {
    await using calmRoot = await newRoot("calm");
    const calm = worldOf({ rollout: REDUNDANCY });
    const points: string[] = [];
    calm.point = (point) => void points.push(point);
    await tenure(calm, calmRoot.path);
    const deaths = points.flatMap((point, at) => (/ job$/.test(point) ? [] : [{ point, at }]));
    assert.ok(deaths.length > 20, points.join(", "));
    for (const { point, at } of deaths) {
      await using root = await newRoot("crash");
      const world = worldOf({ rollout: REDUNDANCY });
      let count = 0;
      world.point = (reached) => {
        if (count++ === at) throw new Death(reached);
      };
      // Some deaths end no tenure, because the effect is tried again later.
      await tenure(world, root.path).catch((error: unknown) => assert.ok(error instanceof Death));
      if (world.ending === undefined) await tenure(world, root.path);
      assert.equal(world.ending, "completed");
      assert.deepEqual([...world.ledger], [...calm.ledger], `death at ${at}, ${point}`);
      assert.equal(world.run.stateDigest, calm.run.stateDigest, `death at ${at}, ${point}`);
    }
  });
});
