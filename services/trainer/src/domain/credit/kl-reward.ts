/**
 * KL in the reward (`algorithm.reward.kl`): before the credit of a step the training engine computes the log-probabilities of
 * its rollouts under the reference policy, and each token loses what it moved away from there.
 *
 * Each step records the coefficient of the next one among its figures, so that a restart goes on with the same.
 */

import {
  adaptKlCoefficient,
  type KlRewardOptions,
  klRewards,
  type MetricSet,
  meanKl,
  Reduction,
  type Rollout,
  rolloutLogprobs,
} from "@hone/rl";
import type { RunContext } from "../run/run-context.ts";
import { stepFigures } from "../step/step-figures.ts";
import { scoreRollouts } from "./score-rollouts.ts";

export type KlRewardContext = Pick<RunContext, "run" | "engine" | "ledger" | "reporter">;

const NEXT_COEFFICIENT = "reward/kl/next_coefficient";

/**
 * @param metrics get `reward/kl/mean`, the mean over rollouts of the mean over their tokens, and the coefficients.
 * @returns for each rollout that may be trained [N] what is added to the reward of its sampled tokens; undefined where the run
 *   has no KL in its rewards.
 */
export async function klRewardsOf<R extends Rollout>(
  context: KlRewardContext,
  step: number,
  rollouts: readonly R[],
  metrics: MetricSet,
): Promise<ReadonlyMap<R, Float64Array> | undefined> {
  const { engine, run } = context;
  const { algorithm, rollout } = run.config;
  const { kl } = algorithm.reward;
  if (kl === undefined) return undefined;
  const coefficient = await coefficientOf(context, step, kl);
  const reference = await scoreRollouts(
    rollouts,
    async (samples) => (await engine.referenceLogprobs(samples, rollout.sampling)).logprobs,
  );
  const rewards = new Map(
    [...reference].map(([each, ofReference]): [R, Float64Array] => {
      return [each, klRewards(rolloutLogprobs(each), ofReference, { ...kl, coefficient })];
    }),
  );
  const distance = meanKl(
    [...rewards.values()].map((ofTokens) => Array.from(ofTokens, (value) => -value / coefficient)),
  );
  metrics.add("reward/kl/mean", Reduction.last, distance);
  metrics.add("reward/kl/coefficient", Reduction.last, coefficient);
  const adapted =
    kl.adaptive === undefined || [...rewards.keys()].every(({ samples }) => samples.length === 0)
      ? coefficient
      : adaptKlCoefficient(coefficient, distance, rewards.size, kl.adaptive);
  metrics.add(NEXT_COEFFICIENT, Reduction.last, adapted);
  return rewards;
}

/**
 * The figures with which a replay that begins at a later step commits its first version: the coefficient that the recorded run
 * had reached, unless the replay is to begin with another one.
 * @param figures those of the step that made the version in the recorded run.
 */
export function carriedKlFigures(
  own: KlRewardOptions | undefined,
  recorded: KlRewardOptions | undefined,
  figures: Readonly<Record<string, number>>,
): Record<string, number> {
  const reached = figures[NEXT_COEFFICIENT];
  const isCarried = own?.adaptive !== undefined && own.coefficient === recorded?.coefficient;
  return isCarried && reached !== undefined ? { [NEXT_COEFFICIENT]: reached } : {};
}

/** The coefficient of a step: that of the run file, or what the step before made of it. */
async function coefficientOf(
  context: KlRewardContext,
  step: number,
  { coefficient, adaptive }: KlRewardOptions,
): Promise<number> {
  if (adaptive === undefined || step === 1) return coefficient;
  const before = await stepFigures(context, step - 1);
  return before[NEXT_COEFFICIENT] ?? coefficient;
}
