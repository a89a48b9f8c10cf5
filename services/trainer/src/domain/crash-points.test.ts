/** A process may die between any two effects; whoever takes over must end with the same run. */

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { describe, test } from "node:test";
import { RetryableError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { testConfig, testRun } from "../testing/fake-run.ts";
import { HashEngine, MemoryWorld } from "../testing/memory-world.ts";
import { OwnershipLostError } from "./errors.ts";
import { holdTenure, type TenureControl } from "./run-tenure.ts";
import { WishBoard } from "./run-wishes.ts";

const CONFIG = testConfig({
  warmStart: { kind: "sft", policy: "p", tasks: 4, epochs: 2, batchSize: 2 },
  dataset: {
    train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
    eval: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
  },
  trainer: {
    steps: 3,
    epochs: 2,
    minibatches: 2,
    optimizer: { kind: "adamw", learningRate: 0.1 },
    checkpoint: { every: 1, keep: 2 },
    eval: { every: 2 },
  },
});

class Death extends Error {}

function newWorld(): MemoryWorld {
  return new MemoryWorld(testRun({ config: CONFIG }));
}

function newControl(): TenureControl {
  const wishes = new WishBoard({ isCancelRequested: false, isPauseRequested: false });
  return { wishes, ending: new AbortController(), stopping: new AbortController().signal };
}

function tenure(world: MemoryWorld, stateRoot: string, control = newControl()) {
  return holdTenure(
    world.takeOver(),
    {
      stateRoot,
      ledger: world,
      jobs: world.jobs,
      rollouts: world,
      pipeline: world.pipeline,
      groupJudges: world.groupJudges,
      tasks: world,
      board: world.board,
      events: world.eventSink,
      createEngine: async () => new HashEngine(world),
      logger: silentLogger(),
    },
    control,
  );
}

/** Everything about a finished run that must not depend on what happened on the way. */
async function outcomeOf(world: MemoryWorld, stateRoot: string) {
  const important = world.events.filter(({ messageId }) => messageId !== undefined);
  return {
    ending: world.ending,
    digest: world.run.stateDigest,
    version: world.run.version,
    ledger: [...world.ledger].sort(),
    events: important.map(({ messageId }) => messageId).sort(),
    evaluations: world.records.map(({ version, mode, metrics }) => [version, mode, metrics.success]),
    executions: [...world.executions].sort(),
    phase: world.status?.phase,
    served: [world.status?.version, world.status?.digest],
    checkpoints: (await readdir(`${stateRoot}/runs/test-1/checkpoints`)).sort(),
  };
}

describe("a run whose process dies", { timeout: 120_000 }, () => {
  test("ends as an undisturbed one, wherever it died", async () => {
    await using calmRoot = await temporaryFolder("calm");
    const calm = newWorld();
    const points: string[] = [];
    calm.point = (name) => void points.push(name);
    assert.equal(await tenure(calm, calmRoot.path), "completed");
    const expected = await outcomeOf(calm, calmRoot.path);
    assert.equal(expected.ledger.length, 4 + 3 * 4);
    assert.deepEqual(expected.checkpoints, ["step-2", "step-3"]);
    assert.deepEqual(new Set(expected.executions.map(([, times]) => times)), new Set([1]));
    assert.ok(points.length > 60, `only ${points.length} points`);

    for (let deadly = 0; deadly < points.length; deadly++) {
      await using root = await temporaryFolder("crash");
      const world = newWorld();
      let count = 0;
      world.point = (name) => {
        if (count++ === deadly) throw new Death(name);
      };
      const where = `death at point ${deadly}, ${points[deadly]}`;
      let ending: string | undefined;
      for (let life = 0; life < 3 && ending === undefined; life++) {
        try {
          ending = await tenure(world, root.path);
        } catch (error) {
          assert.ok(error instanceof Death, `${where}: ${error}`);
        }
      }
      assert.deepEqual(await outcomeOf(world, root.path), expected, where);
      assert.deepEqual((await readdir(`${root.path}/runs/test-1/state`)).length, 2, where);
    }
  });

  test("goes on where it can when the answer of a commit is lost", async () => {
    await using root = await temporaryFolder("lost");
    const world = newWorld();
    let isLost = false;
    world.point = (name) => {
      if (name === "after commit" && world.run.version === 2 && !isLost) {
        isLost = true;
        throw new RetryableError(
          "LOST",
          "Cannot hear the answer as the connection broke: current value is closed",
        );
      }
    };
    assert.equal(await tenure(world, root.path), "completed");
    assert.equal(isLost, true);
    assert.equal(world.run.epoch, 2);
    assert.equal(world.ledger.size, 16);
  });

  test("stops as soon as another process owns the run, and changes nothing more", async () => {
    await using root = await temporaryFolder("stolen");
    const world = newWorld();
    world.point = (name) => {
      if (name === "before commit" && world.run.version === 1) world.takeOver();
    };
    await assert.rejects(tenure(world, root.path), OwnershipLostError);
    assert.equal(world.run.version, 1);
    assert.equal(world.ending, undefined);
  });
});
