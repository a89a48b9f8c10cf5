/**
 * Dynamic sampling (DAPO, Yu et al., 2025, https://arxiv.org/abs/2503.14476, section 3.2): a step trains only groups that teach
 * something, and plays more tasks until it has enough of them.
 *
 * All of it is a function of the results of the groups played so far, in the order of their tasks, and of nothing else: a step
 * that is started again chooses the same groups.
 */

import { isPassed, type PassRule } from "../../metrics/evaluation-metrics.ts";
import { rewardOf, trainedRewardOf } from "../../rewards.ts";
import type { Group, Rollout } from "../../rollout.ts";
import type { OutcomeRules } from "../schema.ts";
import { filterFlatGroups } from "./flat-groups.ts";
import type { DynamicSamplingConfig } from "./schema.ts";

/** How a run file says what a rollout's result is. */
export interface ResultRules extends Pick<PassRule, "passReward"> {
  readonly outcomes: OutcomeRules;
}

/**
 * @returns the groups that teach, in their order: those in which the metric differs. Rollouts that are not trained are not
 *   looked at; the baseline of a group is.
 */
export function groupsThatTeach<R extends Rollout>(
  groups: readonly Group<R>[],
  { metric }: Pick<DynamicSamplingConfig, "metric">,
  { outcomes, passReward }: ResultRules,
): readonly Group<R>[] {
  const figureOf = (rollout: R, reward: number | undefined): number[] => {
    if (reward === undefined) return [];
    return [metric === "reward" ? reward : Number(isPassed(rollout, reward, passReward))];
  };
  const compared = groups.map((group) => {
    const { rollouts, baseline } = group;
    const figures = rollouts.flatMap((rollout) => figureOf(rollout, trainedRewardOf(rollout, outcomes)));
    if (baseline !== undefined) figures.push(...figureOf(baseline, rewardOf(baseline, outcomes)));
    return { group, figures };
  });
  const comparable = compared.filter(({ figures }) => figures.length > 1);
  return filterFlatGroups(comparable, ({ figures }) => figures).kept.map(({ group }) => group);
}

/**
 * How many tasks the next batch of a step has: as many as should complete the step if as large a share of them teaches as until
 * now, and never more than the step trains.
 * @param wanted groups that the step trains.
 * @param teaching groups that teach among those played so far.
 * @param played groups played so far in the step.
 * @returns 0 if the step is complete.
 */
export function nextBatchSize(wanted: number, teaching: number, played: number): number {
  if (teaching >= wanted) return 0;
  if (teaching === 0) return wanted;
  return Math.min(wanted, Math.ceil(((wanted - teaching) * played) / teaching));
}
