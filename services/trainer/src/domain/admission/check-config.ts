/** Refuses settings that the run file's schema allows and this trainer cannot carry out, so that none is ignored. */

import { isTraining, problemMessage, type RunConfig } from "@hone/config";
import type { Problem } from "../report/run-event.ts";

/**
 * @returns the settings of a resolved run file that this trainer cannot train with; empty when it can train the run.
 *
 * Every engine recomputes log-probabilities under the softmax at the sampling temperature. Rollouts from another
 * distribution (truncated by topP, topK or minP, changed by penalties, or greedy) would be trained with wrong ratios.
 */
export function checkConfig(run: RunConfig): Problem[] {
  if (!isTraining(run)) return [];
  const { temperature, topP, topK, minP, repetitionPenalty } = run.rollout.sampling;
  return [
    ...problemUnless(temperature > 0, "temperature", temperature, "greater than 0"),
    ...problemUnless(topP === 1, "topP", topP, "1"),
    ...problemUnless(topK === 0, "topK", topK, "0"),
    ...problemUnless(minP === 0, "minP", minP, "0"),
    ...problemUnless(repetitionPenalty === 1, "repetitionPenalty", repetitionPenalty, "1"),
  ];
}

function problemUnless(isAllowed: boolean, name: string, value: number, rule: string): Problem[] {
  if (isAllowed) return [];
  const key = `rollout.sampling.${name}`;
  const allowed = `${rule} as training compares with the model's whole distribution`;
  return [{ key, valueJson: JSON.stringify(value), allowed, message: problemMessage(key, value, allowed) }];
}
