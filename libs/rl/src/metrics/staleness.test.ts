import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rolloutOf } from "../testing.ts";
import { MetricSet } from "./reduction.ts";
import { addStaleness } from "./staleness.ts";

/** A rollout with this many tokens of each version. */
function madeBy(counts: Readonly<Record<number, number>>) {
  const versions = Object.entries(counts).map(([version, tokenCount]) => ({
    version: Number(version),
    tokenCount,
  }));
  const count = versions.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  const sample = {
    tokenIds: new Uint32Array(count + 1),
    lossMask: Uint8Array.from([0, ...new Array<number>(count).fill(1)]),
    logprobs: new Float32Array(count),
    versions,
  };
  return rolloutOf(0, 0, 1, { samples: [sample] });
}

function figuresOf(version: number, ...rollouts: readonly ReturnType<typeof madeBy>[]) {
  const metrics = new MetricSet();
  addStaleness(metrics, version, rollouts);
  return metrics.toRecord();
}

describe("addStaleness()", () => {
  test("counts tokens by how many versions lie between them and the trained policy", () => {
    assert.deepEqual(figuresOf(5, madeBy({ 5: 1, 4: 2 }), madeBy({ 3: 1 })), {
      "staleness/mean": 1,
      "staleness/max": 2,
      "staleness/0": 1,
      "staleness/1": 2,
      "staleness/2": 1,
    });
  });

  test("says nothing where no token was sampled", () => {
    assert.deepEqual(figuresOf(5, madeBy({})), {});
  });
});
