/**
 * Group in group (GiGPO, Feng et al., 2025, https://arxiv.org/abs/2505.10978): a rollout is compared with its group by the
 * episode's reward, and each of its turns with those turns of the group that acted in the same state.
 *
 *   A_it = episodeWeight A_i + weight B_it
 *   A_i  = (r_i - mean(r)) / (std(r) + eps)         over the rollouts of the group
 *   B_it = (G_it - mean(G)) / (std(G) + eps)        over the group's turns whose state is that of turn t
 *   G_it = r_it + gamma G_i(t+1)
 *
 * The state is what the environment names it, or else a digest of what it showed; for turns without an environment it is the
 * tokens that the model was shown since its last answer. A state that was met once has B = 0.
 */

import { z } from "zod";
import { turnStatesOf } from "../../../turn-states.ts";
import { defineAdvantage } from "../advantage.ts";
import { groupBaselines, groupRelative } from "../group/grpo.ts";
import { partsOfComparison } from "../parts.ts";
import { compareTurns, sizesOfStates, type TurnedRollout, turnsPart } from "./turn-rewards.ts";

export const gigpo = defineAdvantage({
  kind: "gigpo",
  options: {
    /** Factor of the turns' part of an advantage. ROLL: step_reward_weight. */
    weight: z.number().min(0).max(1e3).default(1),
    /** Factor of the episode's part. ROLL: episode_reward_weight. */
    episodeWeight: z.number().min(0).max(1e3).default(1),
    /** By how much a reward counts less with each turn that lies before it. ROLL: step_reward_gamma. */
    gamma: z.number().min(0).max(1).default(0.95),
    /** Divide both parts by the standard deviation of what they are compared with. */
    normalizeByStd: z.boolean().default(true),
    /** Added to the deviation. */
    epsilon: z.number().positive().default(1e-6),
  },
  comparesGroup: true,
  turnKey: () => "kind",
  compute: (step, options) => {
    const compare = (values: readonly number[]) => groupRelative(values, options);
    const sizes: number[] = [];
    const groups = step.map(({ rollouts }) => {
      const episodes = compare(rollouts.map(({ reward }) => reward));
      const turned = rollouts.map(
        ({ rollout, turnRewards }, index): TurnedRollout => ({
          advantage: episodes[index]!,
          turnRewards,
          turnCount: rollout.turnCount,
          states: turnStatesOf(rollout),
        }),
      );
      sizes.push(...sizesOfStates(turned));
      const turnAdvantages = compareTurns(turned, options, compare);
      const baselines = groupBaselines(
        rollouts.map(({ reward }) => reward),
        options,
      );
      return episodes.map((advantage, index) => ({
        advantage,
        turnAdvantages: turnAdvantages[index]!,
        parts: {
          ...partsOfComparison(rollouts[index]!, baselines[index]!, options.episodeWeight),
          turns: turnsPart(rollouts[index]!, advantage, turnAdvantages[index]!, options.episodeWeight),
        },
      }));
    });
    return { groups, metrics: figuresOf(sizes) };
  },
});

/** How many turns of a group acted in the same state; the share of turns that met nobody in theirs. */
function figuresOf(sizes: readonly number[]): Record<string, number> {
  if (sizes.length === 0) return {};
  const turns = sizes.reduce((sum, size) => sum + size, 0);
  return {
    "state_size/mean": turns / sizes.length,
    "state_size/max": Math.max(...sizes),
    "state_size/min": Math.min(...sizes),
    "state_alone/share": sizes.filter((size) => size === 1).length / turns,
  };
}
