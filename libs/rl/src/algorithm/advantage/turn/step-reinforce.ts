/**
 * Returns of turns that are normalised among all turns of the group, or of the step (ROLL's step_reinforce): each turn is
 * worth how much better it went on from there than elsewhere.
 *
 *   G_t = r_t + gamma G_(t+1)       A_t = (G_t - mean(G)) / (std(G) + eps)       t a turn
 *
 * A rollout whose outcome is worth a fixed reward has it at its last turn.
 */

import { z } from "zod";
import { discountedReturns } from "../../returns.ts";
import { type NormalizeOptions, normalizeRewards, normalizeShape } from "../../reward/normalize.ts";
import {
  type AdvantageParts,
  defineAdvantage,
  type RewardedGroup,
  type RewardedRollout,
} from "../advantage.ts";
import { tokensOfTurns } from "../parts.ts";

export const stepReinforce = defineAdvantage({
  kind: "step_reinforce",
  options: {
    /** By how much a reward counts less with each turn that lies before it. ROLL: step_reward_gamma. */
    gamma: z.number().min(0).max(1).default(0.95),
    /** What the returns of turns are compared with. */
    normalize: z.strictObject(normalizeShape).prefault({}),
  },
  comparesGroup: false,
  readsReward: () => false,
  turnKey: () => "kind",
  compute: (step, { gamma, normalize }) => {
    const returns = step.map(({ rollouts }) =>
      rollouts.map((rewarded) => discountedReturns(turnRewardsOf(rewarded), gamma)),
    );
    const compared = normalizeNested(step, returns, normalize);
    return {
      groups: compared.map((group, at) =>
        group.map((turnAdvantages, i) => ({
          advantage:
            turnAdvantages.reduce((sum, each) => sum + each, 0) / Math.max(1, turnAdvantages.length) + 0,
          turnAdvantages,
          parts: partsOf(step[at]!.rollouts[i]!, turnAdvantages),
        })),
      ),
    };
  },
});

/** All is the turns' part, but where the outcome of the rollout is worth a fixed reward. */
function partsOf(
  { rollout, turnRewards }: RewardedRollout,
  turnAdvantages: readonly number[],
): AdvantageParts {
  return turnRewards === undefined ? {} : { turns: tokensOfTurns(rollout, turnAdvantages, 0) };
}

function turnRewardsOf({ rollout, reward, turnRewards }: RewardedRollout): readonly number[] {
  if (turnRewards !== undefined) return turnRewards;
  return Array.from({ length: rollout.turnCount }, (_, turn) =>
    turn === rollout.turnCount - 1 ? reward : 0,
  );
}

/** Normalises numbers that lie by group, rollout and turn. */
function normalizeNested(
  step: readonly RewardedGroup[],
  returns: readonly number[][][],
  options: NormalizeOptions,
): number[][][] {
  const flat = returns.flat(2);
  const groups = returns.flatMap((group, index) => group.flat().map(() => index));
  const environments = groups.map((group) => step[group]!.source ?? "");
  const normalized = normalizeRewards(flat, { groups, environments }, options);
  let next = 0;
  // + 0: a ledger that keeps numbers as text knows no -0.
  return returns.map((group) => group.map((turns) => turns.map(() => normalized[next++]! + 0)));
}
