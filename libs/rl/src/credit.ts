/**
 * Credit: from the groups of a step to one advantage per trained rollout.
 *
 * C1: groups and rollouts keep the order of their slots; nothing here depends on the order of arrival.
 * C2: a rollout that is left out takes no part in its group's statistics and is counted by its outcome.
 * C3: a group with nobody left in it vanishes and is counted.
 */

import { type AdvantageConfig, advantagesOf } from "./advantages/registry.ts";
import { type OutcomeRules, rewardOf } from "./rewards.ts";
import { type Group, type Rollout, rolloutTokenCount } from "./rollout.ts";

/** A rollout with what it is worth. */
export interface CreditedRollout {
  readonly rollout: Rollout;
  readonly reward: number;
  /** The same for each of its sampled tokens. */
  readonly advantage: number;
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
    credited.push({
      task: group.task,
      rollouts: kept.map((entry, i) => ({ ...entry, advantage: advantages[i]! })),
    });
  }
  return { groups: credited, leftOut, emptyGroupCount: groups.length - credited.length };
}
