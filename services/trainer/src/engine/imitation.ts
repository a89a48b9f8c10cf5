/** The supervised part of an update, for every engine. */

import { IMITATION_TERMS } from "@hone/rl";
import type { SamplesBeside, TrainingSample } from "@hone/train";

/** Undefined where nothing is imitated. */
export function imitationOf(samples: readonly TrainingSample[]): SamplesBeside | undefined {
  if (samples.length === 0) return undefined;
  return { samples, objective: { terms: IMITATION_TERMS, entropyCoefficient: 0 } };
}
