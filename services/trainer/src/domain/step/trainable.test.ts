import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Sample } from "@hone/rl";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { testConfig, testRollout, testRun } from "../../testing/fake-run.ts";
import { HashEngine } from "../../testing/hash-engine.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { RequestedControl } from "../run/requested-control.ts";
import { holdTenure } from "../run/run-tenure.ts";
import { checkBounds } from "./trainable.ts";

const sampleOf = (tokenIds: Uint32Array): Sample => ({
  tokenIds,
  lossMask: new Uint8Array(tokenIds.length).fill(1, 1),
  logprobs: new Float32Array(tokenIds.length - 1),
  versions: [{ version: 0, tokenCount: tokenIds.length - 1 }],
});

describe("checkBounds()", () => {
  const bounds = { vocabSize: 8, maxContextTokens: 4 };

  test("accepts samples that the model can have made", () => {
    checkBounds(sampleOf(Uint32Array.of(0, 7, 7, 7)), bounds);
  });

  test("refuses ids beyond the vocabulary, and more tokens than the context holds", () => {
    assert.throws(
      () => checkBounds(sampleOf(Uint32Array.of(1, 8)), bounds),
      /token id 8 at position 1, but ids must be below 8/,
    );
    assert.throws(
      () => checkBounds(sampleOf(Uint32Array.of(1, 2 ** 32 - 1)), bounds),
      /token id 4294967295 at .*must be below 8/,
    );
    assert.throws(
      () => checkBounds(sampleOf(new Uint32Array(5)), bounds),
      /sample of 5 tokens is longer than the run's context of 4/,
    );
  });
});

describe("a forged episode with token ids outside the vocabulary", () => {
  for (const [name, slot, warmStart] of [
    ["a step", { split: "train", step: 1, task: 0, index: 1 }, undefined],
    [
      "the warm start",
      { split: "warm", step: 0, task: 1, index: 0 },
      { kind: "sft", policy: "p", tasks: 4, epochs: 1, batchSize: 2 },
    ],
  ] as const) {
    test(`${name} loses only the forged rollout, and the run continues to its end`, async () => {
      await using root = await temporaryFolder("forged");
      const config = testConfig({
        rollout: { tasksPerStep: 2, groupSize: 4 },
        ...(warmStart && { warmStart }),
      });
      const world = new MemoryWorld(testRun({ config }));
      world.stream.push(
        testRollout(slot, {
          scores: [{ judge: "environment", weight: 1, value: 1 }],
          samples: [sampleOf(Uint32Array.of(1, 2 ** 31))],
        }),
      );
      const ending = await holdTenure(
        world.takeOver(),
        {
          stateRoot: root.path,
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
        {
          requested: new RequestedControl({ isCancelRequested: false, isPauseRequested: false }),
          ending: new AbortController(),
          stopping: new AbortController().signal,
        },
      );
      assert.equal(ending, "completed");
      const key = `${slot.split}.${slot.step}.${slot.task}.${slot.index}`;
      assert.equal(world.ledger.has(key), false);
      assert.equal(world.ledger.size, 3 * 8 + (warmStart === undefined ? 0 : 4) - 1);
    });
  }
});
