import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Aggregation, lossWeights } from "./aggregation.ts";

describe("lossWeights()", () => {
  const counts = [1, 3, 4];

  test("token_mean gives every token the same weight, summing to 1", () => {
    assert.deepEqual(lossWeights(counts, Aggregation.tokenMean, 10), [1 / 8, 1 / 8, 1 / 8]);
  });

  test("token_sum gives every token the weight 1", () => {
    assert.deepEqual(lossWeights(counts, Aggregation.tokenSum, 10), [1, 1, 1]);
  });

  test("seq_mean_token_sum divides by the number of rollouts alone", () => {
    assert.deepEqual(lossWeights(counts, Aggregation.seqMeanTokenSum, 10), [1 / 3, 1 / 3, 1 / 3]);
  });

  test("seq_mean_token_mean gives every rollout the same weight", () => {
    assert.deepEqual(lossWeights(counts, Aggregation.seqMeanTokenMean, 10), [1 / 3, 1 / 9, 1 / 12]);
  });

  test("seq_mean_token_sum_norm divides by a constant in place of the length", () => {
    assert.deepEqual(lossWeights(counts, Aggregation.seqMeanTokenSumNorm, 10), [1 / 30, 1 / 30, 1 / 30]);
  });
});
