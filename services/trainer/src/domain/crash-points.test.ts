/** A process may die between any two effects; the process that takes over must end with the same run. */

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { describe, test } from "node:test";
import { RetryableError, slotKey } from "@hone/core";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import { CRASH_KINDS, crashConfig } from "../testing/crash-kinds.ts";
import { testRun } from "../testing/fake-run.ts";
import { HashEngine } from "../testing/hash-engine.ts";
import { Death, newControl, newRoot, outcomeOf, tenure } from "../testing/memory-tenure.ts";
import { MemoryWorld } from "../testing/memory-world.ts";
import { LostRolloutsError, OwnershipLostError } from "./errors.ts";
import { BrokenStateError } from "./state/check-state.ts";

const ROWS = ["one", "two", "three"].map((response) => ({ prompt: "count", response }));

function newWorld({ config, failureOf, maxBytes } = CRASH_KINDS["a run"]!): MemoryWorld {
  const world = new MemoryWorld(testRun({ config }));
  world.maxBytes = maxBytes;
  if (failureOf !== undefined) world.failureOf = failureOf;
  world.rows = ROWS;
  return world;
}

describe("a run whose process dies", { timeout: 600_000 }, () => {
  for (const [name, kind] of Object.entries(CRASH_KINDS)) {
    test(`ends like an undisturbed run, wherever it died: ${name}`, async () => {
      await using calmRoot = await newRoot("calm");
      const calm = newWorld(kind);
      const points: string[] = [];
      calm.point = (point) => void points.push(point);
      assert.equal(await tenure(calm, calmRoot.path), kind.ending ?? "completed");
      const expected = await outcomeOf(calm, calmRoot.path);
      assert.equal(expected.ledger.length, kind.trained);
      assert.deepEqual(expected.checkpoints, kind.checkpoints);
      assert.deepEqual(expected.keptStates, kind.keptStates ?? []);
      assert.deepEqual(new Set(expected.executions.map(([, times]) => times)), new Set([1]));
      assert.ok(points.length > kind.points, `only ${points.length} points`);

      for (let deadly = 0; deadly < points.length; deadly++) {
        if (kind.dependsOnArrival === true && / job$/.test(points[deadly]!)) continue;
        await using root = await newRoot("crash");
        const world = newWorld(kind);
        let count = 0;
        world.point = (point) => {
          if (count++ === deadly) throw new Death(point);
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
        assert.equal((await readdir(`${root.path}/runs/test-1/state`)).length, kind.states, where);
      }
    });
  }

  // Each point takes a whole run, so each of the two tests leaves out some points, and not the same ones.
  for (const [stateEvery, stride] of [
    [1, 3],
    [2, 2],
  ] as const) {
    test(`ends, once resumed, like a run that never failed, wherever it died: a whole state every ${stateEvery} versions`, async () => {
      const kind = {
        ...CRASH_KINDS["a run"]!,
        config: crashConfig(undefined, { stateEvery, checkpoint: { every: 0, keep: 1 } }),
      };
      await using calmRoot = await newRoot("calm");
      const calm = newWorld(kind);
      assert.equal(await tenure(calm, calmRoot.path), "completed");
      const trainedOf = async (world: MemoryWorld, root: string) => {
        const { events: _, executions: __, ...outcome } = await outcomeOf(world, root);
        return outcome;
      };
      const expected = await trainedOf(calm, calmRoot.path);
      let numPoints = 1;
      for (let deadly = 0; deadly < numPoints; deadly += stride) {
        await using root = await newRoot("resumed");
        const world = newWorld(kind);
        world.failureOf = ({ split, step }) =>
          split === "train" && step === 2 ? { outcome: "infra_failed", reason: "no such key" } : undefined;
        assert.equal(await tenure(world, root.path), "failed");
        world.failureOf = () => undefined;
        world.resume();
        let count = 0;
        world.point = (point) => {
          if (count++ === deadly) throw new Death(point);
        };
        let ending: string | undefined;
        for (let life = 0; life < 3 && ending === undefined; life++) {
          try {
            ending = await tenure(world, root.path);
          } catch (error) {
            assert.ok(error instanceof Death, `death at point ${deadly}: ${error}`);
          }
        }
        numPoints = Math.max(numPoints, deadly === 0 ? count : 0);
        assert.deepEqual(await trainedOf(world, root.path), expected, `death at point ${deadly}`);
        const told = world.events.map(({ messageId }) => messageId);
        for (const id of ["ended", "resumed~1", "ended~1"]) assert.ok(told.includes(id), id);
      }
      assert.ok(numPoints > 15, `only ${numPoints} points`);
    });
  }

  test("replays the steps since the last whole state once, and makes no rollout again", async () => {
    await using root = await newRoot("replay");
    const world = newWorld(
      CRASH_KINDS["a run that writes its optimizer every second step and keeps its rollouts"],
    );
    const updates = [0];
    world.point = (point) => {
      if (point === "train") updates[updates.length - 1]!++;
      if (point === "after commit") updates.push(0);
      if (point === "before commit" && world.run.version === 1) throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path), Death);
    assert.equal(world.run.recovery?.version, 0);
    const [stepOne, stepTwo] = updates.slice(-2);
    const executions = world.executions.size;
    let again = 0;
    world.point = (point) => {
      if (point === "train") again++;
      if (point === "after commit") throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path), Death);
    assert.equal(again, stepOne! + stepTwo!);
    assert.equal(world.executions.size, executions, "a rollout was made again");
  });

  test("continues from the weights of an engine with other arithmetic that replayed the steps", async () => {
    await using root = await newRoot("arithmetic");
    const world = newWorld(
      CRASH_KINDS["a run that writes its optimizer every second step and keeps its rollouts"],
    );
    const engine = (arithmetic: string) => new HashEngine(world, chatmlTokenizer().vocabSize, arithmetic);
    world.point = (point) => {
      if (point === "before commit" && world.run.version === 1) throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path, newControl(), engine("two workers")), Death);
    const committed = world.run.stateDigest;
    assert.equal(world.run.recovery?.version, 0);
    const executions = world.executions.size;
    world.point = (point) => {
      if (point === "after recovery row") throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path, newControl(), engine("four workers")), Death);
    assert.equal(world.run.recovery?.version, 1);
    assert.notEqual(world.run.stateDigest, committed);
    assert.equal(world.run.stateDigest, world.run.recovery?.digest);
    world.point = () => undefined;
    assert.equal(await tenure(world, root.path, newControl(), engine("four workers")), "completed");
    const again = [...world.executions.values()].filter((times) => times > 1);
    assert.deepEqual(again, [], "a rollout was made again");
    assert.ok(world.executions.size > executions);
    assert.equal(world.status?.digest, world.run.stateDigest);
  });

  test("does not continue if the same arithmetic replays the steps to other weights", async () => {
    await using root = await newRoot("other-weights");
    const world = newWorld(
      CRASH_KINDS["a run that writes its optimizer every second step and keeps its rollouts"],
    );
    world.point = (point) => {
      if (point === "before commit" && world.run.version === 1) throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path), Death);
    world.point = () => undefined;
    world.run = { ...world.run, stateDigest: "0".repeat(64) };
    await assert.rejects(tenure(world, root.path), BrokenStateError);
  });

  test("does not continue if stored rollouts of a step are missing, or are not the ones that were trained on", async () => {
    await using root = await newRoot("lost");
    const world = newWorld(
      CRASH_KINDS["a run that writes its optimizer every second step and keeps its rollouts"],
    );
    world.point = (point) => {
      if (point === "before commit" && world.run.version === 1) throw new Death(point);
    };
    await assert.rejects(tenure(world, root.path), Death);
    world.point = () => undefined;
    const index = world.stream.findIndex(({ slot }) => slotKey(slot) === "train.1.0.1");
    const [lost] = world.stream.splice(index, 1);
    await assert.rejects(tenure(world, root.path), LostRolloutsError);
    world.stream.splice(index, 0, lost!);
    for (const [i, scored] of world.stream.entries()) {
      if (!slotKey(scored.slot).startsWith("train.1.")) continue;
      const [sample] = scored.samples;
      const samples = [{ ...sample!, tokenIds: Uint32Array.from(sample!.tokenIds).fill(7, 1) }];
      world.stream[i] = { ...scored, samples };
    }
    await assert.rejects(
      tenure(world, root.path),
      /made weights of SHA-256 .*, where version 1 was committed with/,
    );
  });

  test("names the row of a dataset that cannot be learnt before it trains on any row", async () => {
    await using root = await newRoot("row");
    const world = newWorld(CRASH_KINDS["a run that learns from a dataset only"]);
    world.point = (point) => assert.notEqual(point, "train");
    world.rows = [...ROWS, { prompt: "count", response: "x".repeat(5_000) }];
    await assert.rejects(
      tenure(world, root.path),
      /rows\.jsonl:4 cannot be learnt: it must fit the run: .*4096/,
    );
    world.rows = [...ROWS, { prompt: "count" }];
    await assert.rejects(
      tenure(world, root.path),
      /rows\.jsonl:4 cannot be learnt: it must have a non-empty text as response/,
    );
  });

  test("continues after the answer to a commit is lost", async () => {
    await using root = await newRoot("lost");
    const world = newWorld();
    let isLost = false;
    world.point = (name) => {
      if (name === "after commit" && world.run.version === 2 && !isLost) {
        isLost = true;
        throw new RetryableError("LOST", "the connection broke before the answer came");
      }
    };
    assert.equal(await tenure(world, root.path), "completed");
    assert.equal(isLost, true);
    assert.equal(world.run.epoch, 2);
    assert.equal(world.ledger.size, 16);
  });

  test("stops as soon as another process owns the run, and changes nothing afterwards", async () => {
    await using root = await newRoot("stolen");
    const world = newWorld();
    world.point = (name) => {
      if (name === "before commit" && world.run.version === 1) world.takeOver();
    };
    await assert.rejects(tenure(world, root.path), OwnershipLostError);
    assert.equal(world.run.version, 1);
    assert.equal(world.ending, undefined);
  });
});
