/** What becomes of the rewards of a step before advantages are made of them: the penalty of length, normalisation, clipping. */

import { rolloutTokenCount } from "../../rollout.ts";
import type { RewardedGroup } from "../advantage/advantage.ts";
import { clip, meanOf } from "../statistics.ts";
import { lengthPenalty } from "./length-penalty.ts";
import { normalizeRewards } from "./normalize.ts";
import type { RewardConfig } from "./schema.ts";

export interface ShapedRewards {
  readonly groups: readonly RewardedGroup[];
  /** Figures, shown as `reward/<name>`. */
  readonly metrics: Readonly<Record<string, number>>;
}

export function shapeRewards(
  step: readonly RewardedGroup[],
  { overlong, normalize, clip: limit }: RewardConfig,
): ShapedRewards {
  const metrics: Record<string, number> = {};
  let groups = step;
  if (overlong !== undefined) {
    groups = groups.map(({ rollouts, ...group }) => ({
      ...group,
      rollouts: rollouts.map((rewarded) => {
        const penalty = lengthPenalty(rolloutTokenCount(rewarded.rollout), overlong);
        return { ...rewarded, reward: rewarded.reward + penalty, penalty };
      }),
    }));
    metrics["length_penalty/mean"] = meanOf(
      groups.flatMap(({ rollouts }) => rollouts.map(({ penalty = 0 }) => penalty)),
    );
  }
  if (normalize !== undefined) {
    const belonging = {
      groups: groups.flatMap(({ rollouts }, group) => rollouts.map(() => group)),
      environments: groups.flatMap(({ rollouts, source = "" }) => rollouts.map(() => source)),
    };
    groups = withRewards(groups, normalizeRewards(rewardsOf(groups), belonging, normalize));
  }
  if (limit !== null) {
    const rewards = rewardsOf(groups);
    metrics["clipped/share"] =
      rewards.filter((reward) => Math.abs(reward) > limit).length / Math.max(1, rewards.length);
    groups = withRewards(
      groups,
      rewards.map((reward) => clip(reward, limit)),
    );
  }
  return { groups, metrics };
}

function rewardsOf(groups: readonly RewardedGroup[]): number[] {
  return groups.flatMap(({ rollouts }) => rollouts.map(({ reward }) => reward));
}

function withRewards(groups: readonly RewardedGroup[], rewards: readonly number[]): RewardedGroup[] {
  let next = 0;
  return groups.map(({ rollouts, ...group }) => ({
    ...group,
    rollouts: rollouts.map((rewarded) => ({ ...rewarded, reward: rewards[next++]! })),
  }));
}
