/** Tests the tree of samples. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EpisodeSchema } from "@hone/proto-gen/rollout";
import { sampleTree } from "./sample-tree.ts";

function treeOf(samples: readonly number[][], turns: readonly [sample: number, end: number][] = []) {
  return sampleTree(
    create(EpisodeSchema, {
      samples: samples.map((tokenIds) => ({ tokenIds, lossMask: Uint8Array.from(tokenIds.map(() => 1)) })),
      turns: turns.map(([sample, sampledEnd], index) => ({ index, sample, sampledEnd })),
    }),
  );
}

describe("sampleTree()", () => {
  test("hangs a sample below the earlier one with which it shares most", () => {
    const tree = treeOf(
      [
        [1, 2, 3, 4],
        [9, 9],
        [1, 2, 3, 5, 6],
        [1, 2, 3, 5, 7],
        [1, 8],
      ],
      [
        [0, 1],
        [2, 4],
      ],
    );
    assert.deepEqual(
      tree.map(({ parent, sharedTokens }) => [parent, sharedTokens]),
      [
        [null, 0],
        [null, 0],
        [0, 3],
        [2, 4],
        [tree[4]?.parent, 1],
      ],
    );
    assert.ok(tree[4]?.parent !== null);
    // Without an answer among the shared tokens they all begin anew.
    assert.ok(
      treeOf([
        [1, 2],
        [1, 2, 3],
      ]).every(({ parent }) => parent === null),
    );
  });

  test("agrees with a comparison of all pairs", () => {
    let state = 7;
    const next = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((state / 2 ** 31) * below);
    };
    const samples = Array.from({ length: 60 }, () => Array.from({ length: next(8) }, () => next(2)));
    const shared = (a: readonly number[], b: readonly number[]) => {
      const at = a.findIndex((id, place) => b[place] !== id);
      return at === -1 ? a.length : at;
    };
    const answers = samples.map((_, sample): [number, number] => [sample, 1]);
    for (const [sample, { sharedTokens, parent }] of treeOf(samples, answers).entries()) {
      const most = Math.max(
        0,
        ...samples.slice(0, sample).map((other) => shared(samples[sample] ?? [], other)),
      );
      assert.equal(sharedTokens, most);
      assert.equal(parent === null, most === 0);
      if (parent !== null) assert.ok(parent < sample);
    }
  });

  test("the history of a branch has the turns that it shares, and its own", () => {
    const tree = treeOf(
      [
        [1, 2, 3, 4, 5, 6],
        [1, 2, 3, 4, 7, 8],
      ],
      [
        [0, 2],
        [0, 4],
        [0, 6],
        [1, 6],
      ],
    );
    assert.deepEqual(
      tree.map(({ history }) => history),
      [
        [0, 1, 2],
        [0, 1, 3],
      ],
    );
  });
});
