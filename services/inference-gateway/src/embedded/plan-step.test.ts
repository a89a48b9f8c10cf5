import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PagePool } from "./cache/page-pool.ts";
import { PrefixCache } from "./cache/prefix-cache.ts";
import { DecodeTurns } from "./decode-turns.ts";
import { groupRuns, planStep, runsOfStep } from "./plan-step.ts";
import type { RunCost } from "./policy-runner.ts";
import { Sequence } from "./sequence.ts";
import { HashRunner } from "./testing/hash-runner.ts";

const cost: RunCost = { perRun: 400, perContextRow: 0.2, perAttention: 0.04, maxContextRows: 16_384 };

function started(prompts: number[][]): Sequence[] {
  const cache = new PrefixCache(new PagePool(100));
  return prompts.map((promptIds, i) => {
    const sequence = new Sequence(
      {
        id: String(i),
        model: "m",
        promptIds,
        sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 4, stopTokenIds: [] },
        seed: i,
        sessionId: "",
        groupId: "",
        versionRange: { lowest: 0, highest: 0 },
        deadlineMs: 1_000,
      },
      false,
      200,
      0,
    );
    sequence.start(cache, 0);
    return sequence;
  });
}

const countsOf = (sequences: Sequence[], maxTokens: number) =>
  planStep(sequences, maxTokens).map(({ sequence, count }) => [sequence.request.id, count]);

describe("planStep()", () => {
  test("plans decoding first, then whole prefills in their order, and splits only the first one", () => {
    const sequences = started([[1, 2, 3, 4, 5, 6], [7], [8, 9, 10, 11], [12, 13]]);
    assert.deepEqual(countsOf(sequences, 11), [
      ["1", 1],
      ["0", 6],
      ["2", 4],
    ]);
    assert.deepEqual(countsOf(sequences, 10), [
      ["1", 1],
      ["0", 6],
    ]);
    assert.deepEqual(countsOf(sequences, 4), [
      ["1", 1],
      ["0", 3],
    ]);
    assert.deepEqual(countsOf(sequences, 1), [["1", 1]]);
  });

  test("lets a prefill wait for another one only if that one computes most of its missing tokens", () => {
    const prompt = [1, 2, 3, 4, 5, 6, 7, 8];
    const sequences = started([prompt, prompt, [...prompt, 9], [1, 2, 30, 40, 50, 60, 70, 80]]);
    assert.deepEqual(countsOf(sequences, 100), [
      ["0", 8],
      ["3", 8],
    ]);
  });

  test("plans no more tokens of one prefill than the limit", () => {
    const planned = planStep(started([[1, 2, 3, 4, 5, 6], [7], [8, 9]]), 100, 100, 4);
    assert.deepEqual(
      planned.map(({ count }) => count),
      [1, 4, 2],
    );
  });

  test("does not let a prefill wait for a sequence with another prefix", async () => {
    const cache = new PrefixCache(new PagePool(100));
    const [ahead, behind] = started([
      [1, 1, 1, 1, 1, 1],
      [1, 1, 1, 1, 1, 1],
    ]) as [Sequence, Sequence];
    const pool = new PagePool(10);
    ahead.start(cache, 0);
    ahead.takePages(pool, 2, new HashRunner());
    ahead.advance(cache);
    assert.deepEqual(countsOf([ahead, behind], 100), [
      ["0", 4],
      ["1", 6],
    ]);
  });
});

describe("groupRuns()", () => {
  const items = (shapes: [start: number, count: number][]) =>
    shapes.map(([start, count]) => ({ start, count, tokenIds: new Int32Array(start + count + 8) }));

  test("keeps every item exactly once", () => {
    const all = items(Array.from({ length: 300 }, (_, i) => [(i * 37) % 500, 1 + ((i * 11) % 40)]));
    const grouped = groupRuns(all, cost).flat();
    assert.equal(grouped.length, all.length);
    assert.equal(new Set(grouped).size, all.length);
  });

  test("computes similar items together", () => {
    assert.equal(groupRuns(items(Array.from({ length: 50 }, (_, i) => [100 + (i % 20), 1])), cost).length, 1);
  });

  test("separates long prefills and long contexts, so that the others are not padded to their length", () => {
    const decode = Array.from({ length: 50 }, (): [number, number] => [60, 1]);
    assert.deepEqual(
      groupRuns(items([...decode, [0, 500]]), cost).map((group) => group.length),
      [50, 1],
    );
    assert.deepEqual(
      groupRuns(items([...decode, [4_000, 1]]), cost).map((group) => group.length),
      [50, 1],
    );
  });

  test("limits the new tokens of a run", () => {
    const groups = groupRuns(items(Array.from({ length: 9 }, () => [0, 100])), {
      ...cost,
      maxNewTokens: 400,
    });
    assert.deepEqual(
      groups.map((group) => group.length),
      [4, 4, 1],
    );
  });

  test("limits the context rows of a run", () => {
    const groups = groupRuns(items(Array.from({ length: 256 }, () => [250, 1])), cost);
    assert.deepEqual(
      groups.map((group) => group.length),
      [64, 64, 64, 64],
    );
  });
});

test("runsOfStep() keeps the sequences of a turn together while their contexts grow and those of the others do not", () => {
  const turns = new DecodeTurns(16);
  const sequences = Array.from({ length: 100 }, () => ({ length: 250 }));
  const computed = Array.from({ length: 32 }, () => {
    const items = sequences.map((sequence) => ({
      sequence,
      start: sequence.length,
      count: 1,
      tokenIds: new Int32Array(400),
    }));
    const runs = runsOfStep(items, cost, turns);
    assert.equal(runs.length, 1);
    for (const { sequence } of runs[0]!) sequence.length++;
    return new Set(runs[0]!.map(({ sequence }) => sequence));
  });
  // 64 contexts of up to 256 tokens fit in a run, and 51 of up to 320.
  for (const [step, run] of computed.entries()) {
    const before = computed[step - 1];
    if (before === undefined || step % 16 === 0) continue;
    const kept = [...run].filter((sequence) => before.has(sequence)).length;
    assert.ok(kept >= Math.min(before.size, 51), `step ${step}: ${kept} of ${before.size}`);
  }
  assert.equal(new Set(computed.flatMap((run) => [...run])).size, sequences.length);
});
