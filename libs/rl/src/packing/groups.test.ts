import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { groupMeans, groupsOf, renumber } from "./groups.ts";

const SAMPLES = [{ lossMask: [0, 1, 1, 0, 1] }, { lossMask: [0, 0] }, { lossMask: [0, 1, 0, 1, 1] }];

describe("groups of tokens", () => {
  test("those of a sequence are the trained tokens of a sample", () => {
    assert.deepEqual([...groupsOf(SAMPLES, "sequence")], [0, 0, 0, 2, 2, 2]);
  });

  test("those of a segment stand next to each other, and never in two samples", () => {
    assert.deepEqual([...groupsOf(SAMPLES, "segment")], [0, 0, 1, 2, 3, 3]);
    assert.deepEqual([...groupsOf([{ lossMask: [0, 1] }, { lossMask: [0, 1] }], "segment")], [0, 1]);
  });

  test("renumber() counts from 0 in the order in which groups come first", () => {
    assert.deepEqual([...renumber(Float32Array.of(7, 3, 7, 9))], [0, 1, 0, 2]);
  });

  test("groupMeans() gives each token the mean of its group", () => {
    assert.deepEqual([...groupMeans([1, 2, 3, 4], [5, 0, 5, 0])], [2, 3, 2, 3]);
  });
});
