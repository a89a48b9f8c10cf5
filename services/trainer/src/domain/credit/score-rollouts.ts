/** Numbers that an engine gives the sampled tokens of a step's rollouts before their credit. */

import { isScorable } from "@hone/core";
import { type Rollout, readsSquares, sampledTokenCount } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { RunContext } from "../run/run-context.ts";
import { scoredSample } from "../step/training-sample.ts";

/**
 * @param score gives each sample's tokens a number, [N].
 * @returns for each rollout that may be trained [N] the numbers of its sampled tokens, sample by sample.
 */
export async function scoreRollouts<R extends Rollout>(
  rollouts: readonly R[],
  score: (samples: readonly TrainingSample[]) => Promise<readonly Float32Array[]>,
): Promise<ReadonlyMap<R, Float32Array>> {
  const trainable = rollouts.filter(({ outcome }) => isScorable(outcome));
  const samples = trainable.flatMap((rollout) => rollout.samples.map(scoredSample));
  const found = samples.length === 0 ? [] : await score(samples);
  let next = 0;
  return new Map(
    trainable.map((rollout): [R, Float32Array] => {
      const counts = rollout.samples.map(sampledTokenCount);
      const whole = new Float32Array(counts.reduce((sum, count) => sum + count, 0));
      let begin = 0;
      for (const count of counts) {
        whole.set(found[next++]!, begin);
        begin += count;
      }
      return [rollout, whole];
    }),
  );
}

/** The sums of squared probabilities; undefined where the run's advantage does not read them. */
export async function squaresOf<R extends Rollout>(
  { engine, run }: Pick<RunContext, "engine" | "run">,
  rollouts: readonly R[],
): Promise<ReadonlyMap<R, Float32Array> | undefined> {
  const { algorithm, rollout } = run.config;
  if (!readsSquares(algorithm.advantage)) return undefined;
  const { temperature } = rollout.sampling;
  return scoreRollouts(
    rollouts,
    async (samples) => (await engine.logprobs(samples, { temperature, hasSquares: true })).squares,
  );
}

/** What the critic expects at each token; undefined where the run has none. */
export async function valuesOf<R extends Rollout>(
  { critic }: Pick<RunContext, "critic">,
  rollouts: readonly R[],
): Promise<ReadonlyMap<R, Float32Array> | undefined> {
  return critic && scoreRollouts(rollouts, (samples) => critic.values(samples));
}
