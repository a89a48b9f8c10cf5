/**
 * Credit: from the groups of a step to one advantage per trained rollout, or one per turn of it.
 *
 * C1: groups and rollouts keep the order of their slots; nothing here depends on the order of arrival.
 * C2: a rollout that is left out takes no part in its group's statistics and is counted by its outcome.
 * C3: a group with nobody left in it vanishes and is counted.
 */

import type {
  AdvantageShaping,
  RewardedGroup,
  RewardedRollout,
  RolloutAdvantage,
} from "./algorithm/advantage/advantage.ts";
import type { UserAdvantage } from "./algorithm/advantage/module.ts";
import { addToTokens } from "./algorithm/advantage/of-tokens.ts";
import { makeAdvantages } from "./algorithm/advantage/registry.ts";
import { shapeAdvantages } from "./algorithm/advantage/shape-advantages.ts";
import { comparesEnvironments } from "./algorithm/reward/normalize.ts";
import { shapeRewards } from "./algorithm/reward/shape-rewards.ts";
import type { AlgorithmConfig } from "./algorithm/schema.ts";
import { meanOf, sumOf } from "./algorithm/statistics.ts";
import { componentsOf, rewardOf, trainedRewardOf, turnRewardsOf } from "./rewards.ts";
import type { Group, Rollout } from "./rollout.ts";

/** A rollout with what its tokens are worth. */
export interface CreditedRollout<R extends Rollout = Rollout> extends RolloutAdvantage {
  readonly rollout: R;
  /** What its judges or its outcome's rule made it worth, before the run shaped it. */
  readonly reward: number;
  /** How its advantage was made, for the record of trained tokens; absent where a step is trained again from the ledger. */
  readonly origin?: CreditOrigin;
}

/** How the advantage of a rollout was made. N sampled tokens. */
export interface CreditOrigin {
  /** The reward from which the advantage was made, with what tokens lost by the KL. */
  readonly shapedReward: number;
  /** As the algorithm made it, before it was shaped. */
  readonly made: RolloutAdvantage;
  readonly shaping: AdvantageShaping;
  /** [N] what teachers added after that; absent = nothing. */
  readonly taught?: ArrayLike<number>;
}

/** A group of which at least one rollout is trained. */
export interface CreditedGroup<R extends Rollout = Rollout> {
  readonly task: number;
  readonly rollouts: readonly CreditedRollout<R>[];
}

/** What of `algorithm` sets the credit. */
export type CreditRules = Pick<AlgorithmConfig, "outcomes" | "reward" | "advantage" | "distillation">;

/** The credit of a step. */
export interface Credit<R extends Rollout = Rollout> {
  readonly groups: readonly CreditedGroup<R>[];
  /** Rollouts that are not trained, in order of their slots. */
  readonly leftOut: readonly R[];
  /** Groups in which every rollout was left out. */
  readonly emptyGroupCount: number;
  /** Figures of how rewards were shaped and of the advantage algorithm's own, by their full names. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Whether the groups of a step must name their sources. */
export function readsSources({ reward, advantage }: Pick<CreditRules, "reward" | "advantage">): boolean {
  const normalizations = [reward.normalize, "normalize" in advantage ? advantage.normalize : undefined];
  return normalizations.some((options) => options !== undefined && comparesEnvironments(options));
}

/** What credit takes into account beside the rollouts themselves. */
export interface CreditInputs<R extends Rollout = Rollout> {
  /** The function of the user's module, where the advantage is one of the user's. */
  readonly own?: UserAdvantage | undefined;
  /** What the run adds to the reward of each sampled token of a rollout, [N]; absent = nothing. */
  readonly tokenRewards?: ReadonlyMap<R, Float64Array> | undefined;
  /** What a critic expected at each sampled token of a rollout, [N]; absent = there is no critic. */
  readonly values?: ReadonlyMap<R, Float32Array> | undefined;
  /** The sum of p^2 over the vocabulary at each sampled token of a rollout, [N]; absent = it was not computed. */
  readonly squares?: ReadonlyMap<R, Float32Array> | undefined;
  /** What teachers add to the advantage of each sampled token of a rollout, [N]; absent = there are none. */
  readonly taught?: ReadonlyMap<R, Float64Array> | undefined;
}

/** Gives every group's rollouts their reward and advantage. `groups` must be in order of task, rollouts of index. */
export function assignCredit<R extends Rollout>(
  groups: readonly Group<R>[],
  { outcomes: rules, reward: rewardConfig, advantage: config, distillation }: CreditRules,
  { own, tokenRewards, values, squares, taught }: CreditInputs<R> = {},
): Credit<R> {
  const leftOut: R[] = [];
  const rewarded = groups.flatMap(({ task, source, rollouts, baseline }) => {
    const kept: (RewardedRollout & { readonly rollout: R })[] = [];
    for (const rollout of rollouts) {
      const reward = trainedRewardOf(rollout, rules);
      if (reward === undefined) leftOut.push(rollout);
      else {
        kept.push({
          rollout,
          reward,
          turnRewards: turnRewardsOf(rollout, rules),
          components: componentsOf(rollout, rules),
          values: values?.get(rollout),
          sumsOfSquares: squares?.get(rollout),
        });
      }
    }
    if (kept.length === 0) return []; // C3
    const group = { task, ...(source !== undefined && { source }), rollouts: kept };
    if (baseline === undefined) return [group];
    const baselineReward = rewardOf(baseline, rules) ?? meanOf(kept.map(({ reward }) => reward));
    return [{ ...group, baselineReward }];
  });
  const shaped = shapeRewards(rewarded, rewardConfig);
  const complete = tokenRewards === undefined ? shaped.groups : addTokenRewards(shaped.groups, tokenRewards);
  const made = makeAdvantages(complete, config, own);
  const advantages = shapeAdvantages(complete, made, config);
  const credited = rewarded.map(({ task, rollouts }, group) => ({
    task,
    rollouts: rollouts.map(({ rollout, reward }, i) => {
      const { parts: _, ...found } = advantages.groups[group]![i]!;
      const usesRewards = distillation?.useRewards !== false;
      const worth = usesRewards ? found : withoutReward(found);
      const added = taught?.get(rollout);
      const origin = {
        shapedReward: complete[group]!.rollouts[i]!.reward,
        made: usesRewards ? made.groups[group]![i]! : { advantage: 0, parts: {} },
        shaping: (usesRewards && advantages.shaping) || {},
        ...(added !== undefined && { taught: added }),
      };
      if (added === undefined) return { rollout, reward, ...worth, origin };
      return { rollout, reward, ...addToTokens({ rollout, ...worth }, added), origin };
    }),
  }));
  return {
    groups: credited,
    leftOut,
    emptyGroupCount: groups.length - credited.length,
    metrics: { ...named("reward", shaped.metrics), ...named("advantage", advantages.metrics ?? {}) },
  };
}

function addTokenRewards(
  groups: readonly RewardedGroup[],
  tokenRewards: ReadonlyMap<Rollout, Float64Array>,
): RewardedGroup[] {
  return groups.map(({ rollouts, ...group }) => ({
    ...group,
    rollouts: rollouts.map((rewarded) => {
      const ofTokens = tokenRewards.get(rewarded.rollout);
      if (ofTokens === undefined) return rewarded;
      return { ...rewarded, reward: rewarded.reward + sumOf(ofTokens), tokenRewards: ofTokens };
    }),
  }));
}

/** No advantage, and what a critic is to predict as it was. */
function withoutReward({ returns }: RolloutAdvantage): RolloutAdvantage {
  return { advantage: 0, ...(returns !== undefined && { returns }) };
}

function named(area: string, metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${area}/${name}`, value]));
}
