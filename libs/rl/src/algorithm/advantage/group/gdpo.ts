/**
 * Each part of the reward is compared on its own (GDPO, Liu et al., "Group reward-Decoupled Normalization Policy
 * Optimization", 2026, https://arxiv.org/abs/2601.05242). Two rollouts whose parts differ and whose sums are equal would
 * look the same to GRPO.
 *
 *   A_i = sum over parts c of  weight_c (v_ic - mean(v_c)) / (std(v_c) + eps),   then whitened over the step's tokens
 *
 * Parts are what each judge gave, with the judge's weight, and the penalty of long answers. A part in which a group is
 * equal gives 0 there. A rollout whose outcome is worth a fixed reward has no parts: it counts in each of them with the value
 * that makes their weighted sum its reward.
 */

import { z } from "zod";
import { defineAdvantage, type RewardedGroup } from "../advantage.ts";
import { groupRelative } from "./grpo.ts";

export const gdpo = defineAdvantage({
  kind: "gdpo",
  options: {
    /** Divide each part by the group's standard deviation. */
    normalizeByStd: z.boolean().default(true),
    /** Added to the deviation. */
    epsilon: z.number().positive().default(1e-6),
  },
  comparesGroup: true,
  whitens: true,
  readsReward: () => false,
  compute: (step, options) => ({
    groups: step.map((group) => {
      const sums = group.rollouts.map(() => 0);
      for (const { weight, values } of partsOf(group)) {
        groupRelative(values, options).forEach((advantage, index) => {
          sums[index] = sums[index]! + weight * advantage;
        });
      }
      return sums.map((sum) => ({ advantage: sum + 0 }));
    }),
  }),
});

interface Part {
  readonly weight: number;
  /** One for each rollout of the group. */
  readonly values: readonly number[];
}

/** The parts of a group's rewards, in the order in which they first come. */
function partsOf({ rollouts }: RewardedGroup): Part[] {
  const weights = new Map<string, number>();
  for (const { components = [] } of rollouts) {
    for (const { name, weight } of components) weights.set(name, weight);
  }
  const penalties = { weight: 1, values: rollouts.map(({ penalty = 0 }) => penalty) };
  if (weights.size === 0)
    return [{ weight: 1, values: rollouts.map(({ reward, penalty = 0 }) => reward - penalty) }, penalties];
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  const parts = [...weights].map(([name, weight]) => ({
    weight,
    values: rollouts.map(({ reward, penalty = 0, components }) => {
      if (components === undefined) return total === 0 ? 0 : (reward - penalty) / total;
      return components.find((each) => each.name === name)?.value ?? 0;
    }),
  }));
  return [...parts, penalties];
}
