/** A planned sample as engines take it. */

import { sampledTokenCount } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { PlannedSample } from "./training-plan.ts";

/** Numbers of a sample's tokens, each [N], that only some objectives read. */
interface FurtherInputs {
  readonly reference?: Float32Array | undefined;
  readonly selected?: Float32Array | undefined;
  readonly readsReward?: boolean;
}

export function trainingSample(
  { credited, sample, advantages, oldLogprobs, weights }: PlannedSample,
  { reference, selected, readsReward = false }: FurtherInputs = {},
): TrainingSample {
  const count = sampledTokenCount(sample);
  return {
    tokenIds: sample.tokenIds,
    lossMask: sample.lossMask,
    inputs: {
      behaviourLogprob: oldLogprobs,
      advantage: advantages,
      ...(readsReward && { reward: new Float32Array(count).fill(credited.reward) }),
      ...(reference !== undefined && { referenceLogprob: reference }),
      ...(selected !== undefined && { selected }),
    },
    weights,
  };
}
