/** What the critic expects of a step's rollouts, before their credit. */

import type { Rollout } from "@hone/rl";
import { scoreRollouts } from "../credit/score-rollouts.ts";
import type { RunContext } from "../run/run-context.ts";

/** @returns for each rollout that may be trained [N] the value of its sampled tokens; undefined where the run has no critic. */
export async function estimateValues<R extends Rollout>(
  { critic }: Pick<RunContext, "critic">,
  rollouts: readonly R[],
): Promise<ReadonlyMap<R, Float32Array> | undefined> {
  return critic && scoreRollouts(rollouts, (samples) => critic.values(samples));
}
