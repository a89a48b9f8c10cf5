/**
 * How an advantage was made, for the record of trained tokens; nothing is trained on it.
 *
 *   advantage before it is shaped = episode + turns + kl        episode = what is left when the other two are taken off
 *
 * For algorithms that compare: episode = (reward of the episode - mean) / scale, times its weight where turns count too.
 * N sampled tokens, sample by sample; a single number stands for all tokens of the rollout.
 */

import { type Rollout, rolloutTokenCount, sampledTokenCount } from "../../rollout.ts";
import { sumOf } from "../statistics.ts";
import type { AdvantageParts, RewardedRollout, RolloutAdvantage } from "./advantage.ts";
import { inRowOrder, inSampleOrder, TokenCredit, type TokenRow, tokenRowOf } from "./token/token-row.ts";

/** What a number is compared with. */
export interface Baseline {
  readonly mean: number;
  readonly scale: number;
}

/** The parts of advantages that compare a rollout's reward. @param weight of the episode's part. */
export function partsOfComparison(
  { tokenRewards }: RewardedRollout,
  { mean, scale }: Baseline,
  weight = 1,
): AdvantageParts {
  if (tokenRewards === undefined) return { mean, scale };
  return { mean, scale, kl: (weight * sumOf(tokenRewards)) / scale };
}

/**
 * The parts of advantages that follow rewards from token to token.
 * @param returnsOf from rewards in the order of the row to what they make of each token; must be linear.
 */
export function partsOfRow(
  rewarded: RewardedRollout,
  row: TokenRow,
  credit: TokenCredit,
  returnsOf: (rewards: Float64Array) => ArrayLike<number>,
): AdvantageParts {
  const { tokenRewards, turnRewards } = rewarded;
  const part = (rewards: Float64Array) => inSampleOrder(row, returnsOf(rewards));
  const hasTurns = credit === TokenCredit.turns && turnRewards !== undefined;
  return {
    ...(tokenRewards !== undefined && { kl: part(inRowOrder(row, tokenRewards)) }),
    ...(hasTurns && {
      turns: part(tokenRowOf({ ...rewarded, tokenRewards: [], penalty: 0 }, credit).rewards),
    }),
  };
}

/** [N] a number of each turn, given to the turn's tokens. @param ofNoTurn for tokens that are in none. */
export function tokensOfTurns(rollout: Rollout, ofTurns: readonly number[], ofNoTurn: number): Float64Array {
  const values = new Float64Array(rolloutTokenCount(rollout)).fill(ofNoTurn);
  const begins: number[] = [];
  let next = 0;
  for (const sample of rollout.samples) {
    begins.push(next);
    next += sampledTokenCount(sample);
  }
  rollout.turns?.forEach(({ sample, begin, end }, turn) => {
    const mask = rollout.samples[sample]?.lossMask;
    if (mask === undefined) return;
    const from = begins[sample]! + sampledTokenCount({ lossMask: mask.subarray(0, begin) });
    const count = sampledTokenCount({ lossMask: mask.subarray(begin, end) });
    values.fill(ofTurns[turn] ?? ofNoTurn, from, from + count);
  });
  return values;
}

/** [N] the advantage of each token in float64, whichever of its three forms it is given in. */
export function tokensOfAdvantage(
  rollout: Rollout,
  { advantage, turnAdvantages, tokenAdvantages }: RolloutAdvantage,
): Float64Array {
  if (tokenAdvantages !== undefined) return tokenAdvantages;
  return tokensOfTurns(rollout, turnAdvantages ?? [], advantage);
}
