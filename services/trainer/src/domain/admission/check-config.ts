/** Refuses settings that the run file's schema allows and this trainer cannot carry out, so that none is ignored. */

import { isTraining, type RunConfig } from "@hone/config";
import { SAMPLING_NAMES, SAMPLING_PARAMETERS, SamplingEffect } from "@hone/rl";
import { type Problem, problemOf } from "../report/run-event.ts";

/**
 * @returns the settings of a resolved run file that this trainer cannot train with; empty when it can train the run.
 *
 * Every engine recomputes log-probabilities under the softmax at the sampling temperature. Rollouts from another
 * distribution (truncated, changed by penalties, or greedy) would be trained with wrong ratios.
 */
export function checkConfig(run: RunConfig): Problem[] {
  if (!isTraining(run)) return [];
  const { sampling } = run.rollout;
  return SAMPLING_NAMES.flatMap((name) => {
    const { effect, default: neutral } = SAMPLING_PARAMETERS[name];
    const value = sampling[name];
    if (name === "temperature") return problemUnless(value > 0, name, value, "greater than 0");
    return problemUnless(effect === SamplingEffect.none || value === neutral, name, value, `${neutral}`);
  });
}

function problemUnless(isAllowed: boolean, name: string, value: number, rule: string): Problem[] {
  if (isAllowed) return [];
  const key = `rollout.sampling.${name}`;
  const allowed = `${rule} as training compares with the model's whole distribution`;
  return [problemOf(key, value, allowed)];
}
