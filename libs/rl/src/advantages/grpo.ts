/**
 * Group-relative advantages.
 *
 *   A_i = (r_i - mean(r)) / (std(r) + eps)      GRPO, Shao et al., "DeepSeekMath", 2024, section 4.1
 *   A_i =  r_i - mean(r)                        without the division: Dr.GRPO, Liu et al., "Understanding
 *                                               R1-Zero-Like Training", 2025
 *
 * std is the sample deviation (divisor n - 1), as in verl and TRL. A group whose rewards are all equal, and a group
 * of one, say nothing about which rollout was better: all their advantages are exactly 0.
 */

import type { Advantages } from "./registry.ts";
import type { TurnRewardConfig } from "./turn-advantages.ts";

/** Options of GRPO advantages. */
export interface GrpoConfig {
  readonly kind: "grpo";
  /** Divide by the group's standard deviation; false gives Dr.GRPO. */
  readonly normalizeByStd: boolean;
  /** Added to the deviation, so that nearly equal rewards do not explode. */
  readonly epsilon: number;
  /** How rewards of single turns count; absent = they do not. */
  readonly turnRewards?: TurnRewardConfig | undefined;
}

/** @returns one advantage per reward, in their order. */
export const grpoAdvantages: Advantages<GrpoConfig> = (rewards, config) => {
  const count = rewards.length;
  if (rewards.every((reward) => reward === rewards[0])) return rewards.map(() => 0);
  const mean = rewards.reduce((total, reward) => total + reward, 0) / count;
  if (!config.normalizeByStd) return rewards.map((reward) => reward - mean);
  const squares = rewards.reduce((total, reward) => total + (reward - mean) ** 2, 0);
  const scale = Math.sqrt(squares / (count - 1)) + config.epsilon;
  return rewards.map((reward) => (reward - mean) / scale);
};
