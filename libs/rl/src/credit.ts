/**
 * Credit: from the groups of a step to one advantage per trained rollout, or one per turn of it.
 *
 * C1: groups and rollouts keep the order of their slots; nothing here depends on the order of arrival.
 * C2: a rollout that is left out takes no part in its group's statistics and is counted by its outcome.
 * C3: a group with nobody left in it vanishes and is counted.
 */

import { type AdvantageConfig, advantagesOf } from "./advantages/registry.ts";
import { turnAdvantagesOf } from "./advantages/turn-advantages.ts";
import { type OutcomeRules, rewardOf, turnRewardsOf } from "./rewards.ts";
import { type Group, type Rollout, rolloutTokenCount, type Sample, sampledTokenCount } from "./rollout.ts";

/** A rollout with what it is worth. */
export interface CreditedRollout {
  readonly rollout: Rollout;
  readonly reward: number;
  /** By the episode's reward; the same for each of its sampled tokens where turns have none of their own. */
  readonly advantage: number;
  /** [turnCount] of each turn's tokens, the episode's part included; absent = `advantage` is that of every token. */
  readonly turnAdvantages?: readonly number[];
}

/** A group of which at least one rollout is trained. */
export interface CreditedGroup {
  readonly task: number;
  readonly rollouts: readonly CreditedRollout[];
}

/** The credit of a step. */
export interface Credit {
  readonly groups: readonly CreditedGroup[];
  /** Rollouts that are not trained, in order of their slots. */
  readonly leftOut: readonly Rollout[];
  /** Groups in which every rollout was left out. */
  readonly emptyGroupCount: number;
}

/** Gives every group's rollouts their reward and advantage. `groups` must be in order of task, rollouts of index. */
export function assignCredit(groups: readonly Group[], rules: OutcomeRules, config: AdvantageConfig): Credit {
  const credited: CreditedGroup[] = [];
  const leftOut: Rollout[] = [];
  for (const group of groups) {
    const kept: Array<{ rollout: Rollout; reward: number }> = [];
    for (const rollout of group.rollouts) {
      const reward = rewardOf(rollout, rules);
      // One without a sampled token has nothing to train, and its reward would still shift the others' baseline.
      if (reward === undefined || rolloutTokenCount(rollout) === 0) leftOut.push(rollout);
      else kept.push({ rollout, reward });
    }
    if (kept.length === 0) continue; // C3
    const advantages = advantagesOf(
      kept.map(({ reward }) => reward),
      config,
    );
    const rollouts = kept.map((entry, i) => ({ ...entry, advantage: advantages[i]! }));
    credited.push({ task: group.task, rollouts: withTurns(rollouts, rules, config) });
  }
  return { groups: credited, leftOut, emptyGroupCount: groups.length - credited.length };
}

/** Adds the advantages of turns where the run wants them. */
function withTurns(
  group: readonly CreditedRollout[],
  rules: OutcomeRules,
  config: AdvantageConfig,
): readonly CreditedRollout[] {
  if (config.turnRewards === undefined) return group;
  const turned = group.map(({ rollout, advantage }) => ({
    advantage,
    turnRewards: turnRewardsOf(rollout, rules),
    turnCount: rollout.turnCount,
  }));
  const advantages = turnAdvantagesOf(turned, config.turnRewards, config);
  return group.map((credited, i) => ({ ...credited, turnAdvantages: advantages[i]! }));
}

/** Whether any token of a rollout has an advantage: without one it gives no gradient. */
export function hasAdvantage({
  advantage,
  turnAdvantages,
}: Pick<CreditedRollout, "advantage" | "turnAdvantages">): boolean {
  return turnAdvantages === undefined ? advantage !== 0 : turnAdvantages.some((each) => each !== 0);
}

/**
 * @param sample index of one of the rollout's samples.
 * @returns [N] the advantage of each of its sampled tokens.
 */
export function tokenAdvantages(
  { rollout, advantage, turnAdvantages }: Omit<CreditedRollout, "reward">,
  sample: number,
): Float32Array {
  const row = rollout.samples[sample]!;
  const advantages = new Float32Array(sampledTokenCount(row)).fill(advantage);
  if (turnAdvantages === undefined || rollout.turns === undefined) return advantages;
  const sampledBefore = countSampled(row);
  rollout.turns.forEach((turn, index) => {
    if (turn.sample !== sample) return;
    advantages.fill(turnAdvantages[index] ?? advantage, sampledBefore[turn.begin], sampledBefore[turn.end]);
  });
  return advantages;
}

/** [T + 1] how many sampled tokens stand before each position. */
function countSampled({ lossMask }: Sample): Uint32Array {
  const before = new Uint32Array(lossMask.length + 1);
  lossMask.forEach((bit, position) => {
    before[position + 1] = before[position]! + bit;
  });
  return before;
}
