import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Slot } from "@hone/core";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { newRoot, tenure } from "../../testing/memory-tenure.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";

/** A finished run of steps with two groups of two rollouts each. */
async function runWith(
  trainer: { readonly steps: number; readonly maxStaleness: number },
  change: (world: MemoryWorld) => void = () => undefined,
) {
  await using root = await newRoot("open-groups");
  const config = testConfig({
    rollout: { tasksPerStep: 2, groupSize: 2 },
    dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 99 } } },
    trainer: {
      optimizer: { kind: "adamw", learningRate: 0.1 },
      checkpoint: { every: 0, keep: 1 },
      eval: { every: 0 },
      ...trainer,
    },
  });
  const world = new MemoryWorld(testRun({ config }));
  change(world);
  assert.equal(await tenure(world, root.path), "completed");
  const groupsOf = (step: number) =>
    [...world.groupRows.values()]
      .filter(({ trainedBy }) => trainedBy === step)
      .map((group) => `${group.step}.${group.task}`);
  const steps = Array.from({ length: trainer.steps }, (_, i) => world.steps.get(i + 1)?.metrics ?? {});
  return { world, groupsOf, steps };
}

const isOf = (slot: Slot, ...groups: readonly string[]) =>
  slot.split === "train" && groups.includes(`${slot.step}.${slot.task}`);

describe("an asynchronous run", () => {
  test("asks for the groups of later steps too, and no more than it will train", async () => {
    const { world, groupsOf } = await runWith({ steps: 3, maxStaleness: 1 });
    assert.deepEqual([...world.groupRows.keys()], ["1.0", "1.1", "1.2", "1.3", "2.0", "2.1"]);
    assert.deepEqual([1, 2, 3].map(groupsOf), [
      ["1.0", "1.1"],
      ["1.2", "1.3"],
      ["2.0", "2.1"],
    ]);
    assert.equal(world.ledger.size, 3 * 4);
  });

  test("takes the groups that are complete first, and leaves the others to later steps", async () => {
    const { groupsOf } = await runWith({ steps: 3, maxStaleness: 1 }, (world) => {
      world.storedAt = (slot) => (isOf(slot, "1.0", "1.2") ? 1 : 0);
    });
    assert.deepEqual([1, 2].map(groupsOf), [
      ["1.1", "1.3"],
      ["1.0", "1.2"],
    ]);
  });

  test("tells how old the tokens of a step are", async () => {
    const { steps } = await runWith({ steps: 3, maxStaleness: 1 });
    assert.deepEqual(
      steps.map((metrics) => [metrics["staleness/mean"], metrics["staleness/max"], metrics["groups/open"]]),
      [
        [0, 0, 2],
        [1, 1, 2],
        [1, 1, 0],
      ],
    );
  });

  test("tells how many scored rollouts wait for a later step", async () => {
    const { steps } = await runWith({ steps: 3, maxStaleness: 1 });
    // Rollouts are scored at once here: those of the two groups that the first step does not take wait.
    assert.equal(steps[0]?.["rollouts/waiting"], 4);
    assert.equal(steps[2]?.["rollouts/waiting"], 0);
  });

  test("gives up a group that has grown too old, and plays its task again first", async () => {
    const { world, groupsOf, steps } = await runWith({ steps: 4, maxStaleness: 1 }, (changed) => {
      changed.failureOf = (slot) =>
        isOf(slot, "1.0") && slot.index === 1 ? { outcome: "stale", reason: "old" } : undefined;
    });
    const rows = [...world.groupRows.values()];
    assert.deepEqual(
      rows.filter(({ isGivenUp }) => isGivenUp).map(({ step, task }) => [step, task]),
      [[1, 0]],
    );
    const again = world.groupRows.get("2.0");
    assert.equal(again?.cursor, world.groupRows.get("1.0")?.cursor);
    assert.equal(world.tasks.get("train.2.0.0"), world.tasks.get("train.1.0.0"));
    assert.deepEqual([1, 2, 3, 4].flatMap(groupsOf).includes("1.0"), false);
    assert.deepEqual(
      steps.map((metrics) => metrics["groups/too_old"]),
      [0, 1, 0, 0],
    );
    assert.equal(world.ledger.size, 4 * 4);
  });

  test("never trains a token that is older than it allows, though nobody has ended its rollout", async () => {
    const { world, steps } = await runWith({ steps: 4, maxStaleness: 1 }, (changed) => {
      changed.storedAt = (slot) => (isOf(slot, "1.0") ? 2 : 0);
    });
    assert.equal(world.groupRows.get("1.0")?.trainedBy, undefined);
    assert.equal(world.groupRows.get("1.0")?.isGivenUp, true);
    assert.ok(steps.every((metrics) => metrics["staleness/max"]! <= 1));
    assert.equal(world.ledger.size, 4 * 4);
  });

  test("asks for others at once where so many have grown too old that too few are left", async () => {
    const { world, steps } = await runWith({ steps: 1, maxStaleness: 1 }, (changed) => {
      changed.failureOf = (slot) =>
        isOf(slot, "1.0", "1.1") ? { outcome: "stale", reason: "old" } : undefined;
    });
    assert.deepEqual([...world.groupRows.keys()], ["1.0", "1.1", "1.2", "1.3"]);
    assert.equal(steps[0]?.["groups/too_old"], 2);
    assert.equal(world.ledger.size, 4);
  });

  test("goes no further ahead than a step while groups are complete in time", async () => {
    const { world, steps } = await runWith({ steps: 6, maxStaleness: 4 });
    assert.deepEqual(
      steps.map((metrics) => metrics["groups/ahead"]),
      [2, 2, 2, 2, 2, 2],
    );
    assert.equal(world.groupRows.size, 6 * 2);
    assert.ok(steps.every((metrics) => metrics["staleness/max"]! <= 1));
  });

  test("goes further ahead, up to maxStaleness steps, while steps have to wait for their groups", async () => {
    const { steps } = await runWith({ steps: 7, maxStaleness: 3 }, (world) => {
      // What is asked for ahead takes two more steps.
      world.storedAt = (slot) => (slot.split === "train" && slot.task >= 2 ? slot.step + 2 : 0);
    });
    assert.deepEqual(
      steps.slice(0, 4).map((metrics) => metrics["groups/ahead"]),
      [2, 2, 4, 6],
    );
  });

  test("trains the same weights as a synchronous run where it may use no old token", async () => {
    const synchronous = await runWith({ steps: 1, maxStaleness: 0 });
    const asynchronous = await runWith({ steps: 1, maxStaleness: 3 });
    assert.equal(asynchronous.world.run.stateDigest, synchronous.world.run.stateDigest);
    assert.deepEqual([...asynchronous.world.ledger], [...synchronous.world.ledger]);
  });
});
