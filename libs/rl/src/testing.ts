/** Small rollouts for the tests of this package. */

import { Outcome, type Split } from "@hone/core";
import type { Rollout, Sample } from "./rollout.ts";

/** A sample of one prompt token and `sampledTokens` sampled ones. */
export function sampleOf(sampledTokens: number): Sample {
  return {
    tokenIds: Array.from({ length: sampledTokens + 1 }, (_, i) => i),
    lossMask: Uint8Array.from({ length: sampledTokens + 1 }, (_, i) => (i === 0 ? 0 : 1)),
    logprobs: Array.from({ length: sampledTokens }, () => -0.5),
    versions: [{ version: 0, tokenCount: sampledTokens }],
  };
}

/** A completed rollout with one score. */
export function rolloutOf(
  task: number,
  index: number,
  reward: number,
  changes: Partial<Rollout> = {},
): Rollout {
  return {
    slot: { split: "train" satisfies Split, step: 1, task, index },
    attempt: 1,
    outcome: Outcome.completed,
    scores: [{ judge: "environment", weight: 1, value: reward }],
    samples: [sampleOf(2)],
    metrics: {},
    turnCount: 1,
    ...changes,
  };
}
