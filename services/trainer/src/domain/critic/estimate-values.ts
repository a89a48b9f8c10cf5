/** What the critic expects of a step's rollouts, before their credit. */

import { isScorable } from "@hone/core";
import { type Rollout, sampledTokenCount } from "@hone/rl";
import type { RunContext } from "../run/run-context.ts";
import { scoredSample } from "../step/training-sample.ts";

/** @returns for each rollout that may be trained [N] the value of its sampled tokens; undefined where the run has no critic. */
export async function estimateValues<R extends Rollout>(
  { critic }: Pick<RunContext, "critic">,
  rollouts: readonly R[],
): Promise<ReadonlyMap<R, Float32Array> | undefined> {
  if (critic === undefined) return undefined;
  const trainable = rollouts.filter(({ outcome }) => isScorable(outcome));
  const samples = trainable.flatMap((rollout) => rollout.samples.map(scoredSample));
  const found = samples.length === 0 ? [] : await critic.values(samples);
  let next = 0;
  return new Map(
    trainable.map((rollout): [R, Float32Array] => [
      rollout,
      joined(rollout.samples.map((sample) => ({ count: sampledTokenCount(sample), values: found[next++]! }))),
    ]),
  );
}

function joined(parts: readonly { readonly count: number; readonly values: Float32Array }[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, { count }) => sum + count, 0));
  let begin = 0;
  for (const { count, values } of parts) {
    whole.set(values, begin);
    begin += count;
  }
  return whole;
}
