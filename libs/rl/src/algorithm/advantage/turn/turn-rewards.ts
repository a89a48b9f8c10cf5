/**
 * Advantages of single turns, from rewards that were given to turns.
 *
 *   G_it = sum over k >= t of gamma^(k-t) * r_ik
 *   A_it = episodeWeight * A_i + weight * B_it
 *
 * A_i is the rollout's advantage by its episode's reward. B_it compares the return G_it with the returns G_jt of all rollouts j
 * of the group that came to turn t, in the same way as A_i compares rewards. These are the step advantages of GiGPO (Feng
 * et al., 2025) and ROLL, with the turn's index in the place of their state's hash. A turn that one rollout alone came to
 * has B_it = 0.
 */

import { z } from "zod";
import { discountedReturns } from "../../returns.ts";
import type { RewardedGroup, RewardedRollout, RolloutAdvantage } from "../advantage.ts";
import { type Baseline, partsOfComparison, tokensOfTurns } from "../parts.ts";

/** The option `turnRewards` of advantages that compare the rollouts of a group. */
export const turnRewardsOption = z
  .strictObject({
    /** Factor of the turns' part of an advantage. ROLL: step_reward_weight. */
    weight: z.number().min(0).max(1e3).default(1),
    /** Factor of the episode's part. ROLL: episode_reward_weight. */
    episodeWeight: z.number().min(0).max(1e3).default(1),
    /** By how much a reward counts less with each turn that lies before it. ROLL: step_reward_gamma. */
    gamma: z.number().min(0).max(1).default(0.95),
  })
  .optional();

export type TurnRewardOptions = NonNullable<z.output<typeof turnRewardsOption>>;

/** Compares numbers of rollouts of one group, such as their rewards. @returns one advantage per number, in their order. */
export type Comparison = (values: readonly number[]) => readonly number[];

/**
 * The advantages of a group by a comparison of its rewards and, with `turnRewards`, of its turns' returns.
 * @param baselines what each reward is compared with, for the record.
 */
export function compareGroup(
  { rollouts }: RewardedGroup,
  compare: Comparison,
  baselines: (values: readonly number[]) => readonly Baseline[],
  turnRewards: TurnRewardOptions | undefined,
): RolloutAdvantage[] {
  const values = rollouts.map(({ reward }) => reward);
  const comparedWith = baselines(values);
  const parts = rollouts.map((rewarded, i) =>
    partsOfComparison(rewarded, comparedWith[i]!, turnRewards?.episodeWeight),
  );
  const advantages = compare(values).map((advantage) => ({ advantage }));
  if (turnRewards === undefined) return advantages.map((each, i) => ({ ...each, parts: parts[i]! }));
  const turned = rollouts.map(({ rollout, turnRewards: rewards }, i) => ({
    advantage: advantages[i]!.advantage,
    turnRewards: rewards,
    turnCount: rollout.turnCount,
  }));
  const turnAdvantages = compareTurns(turned, turnRewards, compare);
  return advantages.map((each, i) => ({
    ...each,
    turnAdvantages: turnAdvantages[i]!,
    parts: {
      ...parts[i]!,
      turns: turnsPart(rollouts[i]!, each.advantage, turnAdvantages[i]!, turnRewards.episodeWeight),
    },
  }));
}

/** [N] the turns' part of the advantages of a rollout's tokens. */
export function turnsPart(
  { rollout }: RewardedRollout,
  advantage: number,
  turnAdvantages: readonly number[],
  episodeWeight: number,
): Float64Array {
  return tokensOfTurns(
    rollout,
    turnAdvantages.map((each) => each - episodeWeight * advantage),
    0,
  );
}

/** One rollout of a group. */
export interface TurnedRollout {
  /** By the episode's reward. */
  readonly advantage: number;
  /** Reward of each turn, in their order; undefined = the rollout's turns are not compared. */
  readonly turnRewards: readonly number[] | undefined;
  readonly turnCount: number;
  /** The state in which each turn acted; absent = turns of equal index are compared. */
  readonly states?: readonly string[];
}

/** @returns for each rollout of the group the advantage of each of its turns. */
export function compareTurns(
  group: readonly TurnedRollout[],
  { weight, episodeWeight, gamma }: TurnRewardOptions,
  compare: Comparison,
): number[][] {
  const returns = group.map(({ turnRewards }) =>
    turnRewards === undefined ? [] : discountedReturns(turnRewards, gamma),
  );
  const advantages = group.map(({ advantage, turnCount }) =>
    Array.from({ length: turnCount }, () => episodeWeight * advantage + 0),
  );
  for (const turns of comparedTurns(group)) {
    const compared = compare(turns.map(({ index, turn }) => returns[index]![turn]!));
    turns.forEach(({ index, turn }, i) => {
      // + 0: a ledger that keeps numbers as text knows no -0.
      advantages[index]![turn] = advantages[index]![turn]! + weight * compared[i]! + 0;
    });
  }
  return advantages;
}

/** How many turns are compared with each other, for each state of the group. */
export function sizesOfStates(group: readonly TurnedRollout[]): number[] {
  return comparedTurns(group).map(({ length }) => length);
}

interface ComparedTurn {
  /** Which rollout of the group. */
  readonly index: number;
  readonly turn: number;
}

/** The turns of a group, those together that are compared with each other. */
function comparedTurns(group: readonly TurnedRollout[]): ComparedTurn[][] {
  const turns = group.flatMap(({ turnRewards = [] }, index) =>
    turnRewards.map((_, turn) => ({ index, turn })),
  );
  return [...Map.groupBy(turns, ({ index, turn }) => group[index]!.states?.[turn] ?? turn).values()];
}
