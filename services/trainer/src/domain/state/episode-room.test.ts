import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { newRoot, outcomeOf, tenure } from "../../testing/memory-tenure.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { EpisodesFullError } from "../errors.ts";
import type { EpisodeRoom } from "../rollouts/scored-rollout.ts";
import { episodeBytes, isRoomShort } from "./episode-room.ts";

const STEPS = 6;
/** Four rollouts of two bytes each. */
const STEP_BYTES = 8;
const CONFIG = testConfig({
  rollout: { tasksPerStep: 2, groupSize: 2 },
  trainer: {
    steps: STEPS,
    minibatches: 2,
    stateEvery: 100,
    checkpoint: { every: 0, keep: 1 },
    optimizer: { kind: "adamw", learningRate: 0.1 },
  },
});

describe("isRoomShort()", () => {
  const room: EpisodeRoom = { bytes: 400, maxBytes: 1_000, isFull: false, firstSequence: 1, runs: ["a-1"] };
  test("adds up what episodes take in the stream", () => {
    assert.equal(episodeBytes([{ bytes: 100 }, { bytes: 50 }]), 150);
  });

  test("leaves room for twice the bytes to come, for each run that has episodes there", () => {
    assert.equal(isRoomShort(room, 300), false);
    assert.equal(isRoomShort(room, 301), true);
    assert.equal(isRoomShort({ ...room, runs: ["a-1", "b-2"] }, 150), false);
    assert.equal(isRoomShort({ ...room, runs: ["a-1", "b-2"] }, 151), true);
    assert.equal(isRoomShort({ ...room, runs: [] }, 300), false);
  });

  test("is never short where the stream has no limit", () => {
    assert.equal(isRoomShort({ ...room, maxBytes: undefined }, 1e12), false);
  });
});

describe("a run whose episodes fill their stream", () => {
  /** @returns the finished run, and the versions that were written with the optimizer. */
  async function play(maxBytes?: number) {
    await using root = await newRoot("room");
    const world = new MemoryWorld(testRun({ config: CONFIG }));
    world.maxBytes = maxBytes;
    const whole: number[] = [];
    world.point = (point) => {
      if (point === "after save") whole.push((world.run.version ?? -1) + 1);
    };
    const ending = await tenure(world, root.path);
    return { ending, whole, outcome: await outcomeOf(world, root.path) };
  }

  test("is written with the optimizer as often as the room demands, and ends with the same weights", async () => {
    const wide = await play();
    assert.deepEqual([wide.ending, wide.whole], ["completed", [0]]);
    // Room is left for two more steps: whole states come after every third, every second and every step.
    for (const [steps, whole] of [
      [5, [0, 4]],
      [4, [0, 3]],
      [3, [0, 2, 4]],
      [2, [0, 1, 2, 3, 4, 5]],
      [1, [0, 1, 2, 3, 4, 5]],
    ] as const) {
      const narrow = await play(steps * STEP_BYTES);
      assert.deepEqual(narrow.whole, whole, `room for ${steps} steps`);
      assert.deepEqual(narrow.outcome, wide.outcome);
    }
  });

  test("makes room by a replay where its episodes suddenly grew", async () => {
    const wide = await play();
    await using root = await newRoot("grown");
    const world = new MemoryWorld(testRun({ config: CONFIG }));
    world.maxBytes = 36;
    world.bytesOf = ({ step }) => (step < 3 ? 2 : 8);
    let retries = 0;
    let ending: string | undefined;
    while (ending === undefined) {
      try {
        ending = await tenure(world, root.path);
      } catch (error) {
        assert.ok(error instanceof EpisodesFullError, String(error));
        retries++;
      }
    }
    assert.equal(ending, "completed");
    assert.equal(retries, 1);
    assert.equal(world.run.recovery?.version, STEPS - 1);
    assert.deepEqual(await outcomeOf(world, root.path), wide.outcome);
  });
});
