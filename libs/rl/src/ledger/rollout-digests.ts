/** Digests of what a rollout's model saw and sampled, by which two runs are compared without their tokens. */

import { createHash } from "node:crypto";
import type { Sample } from "../rollout.ts";
import type { ChainedRollout } from "./chain.ts";

/**
 * T tokens of a sample: its ids as int32, its mask as bytes, its log-probabilities as float64, little-endian, each sample after
 * its number of tokens.
 */
export function rolloutDigests(
  samples: readonly Sample[],
): Pick<ChainedRollout, "prompt" | "tokens" | "logprobs"> {
  const [prompt, tokens, logprobs] = [createHash("sha256"), createHash("sha256"), createHash("sha256")];
  for (const { tokenIds, lossMask, logprobs: ofSample } of samples) {
    const ids = Int32Array.from(tokenIds);
    const shown = ids.filter((_, at) => lossMask[at] === 0);
    for (const [hash, length] of [
      [prompt, shown.length],
      [tokens, ids.length],
      [logprobs, ofSample.length],
    ] as const) {
      hash.update(Int32Array.of(length));
    }
    prompt.update(shown);
    tokens.update(ids).update(lossMask);
    logprobs.update(Float64Array.from(ofSample));
  }
  return {
    prompt: prompt.digest("hex"),
    tokens: tokens.digest("hex"),
    logprobs: logprobs.digest("hex"),
  };
}
