/**
 * The baseline of least variance at each token (optimal token baseline, Li et al., 2026): rollouts of a group are compared at
 * the same position, each weighted by how far its gradient reaches there.
 *
 *   w_t = (1 - 2 p_t + sum over the vocabulary of p^2) rho_t^2      p_t = probability of the sampled token
 *   W_t = sum over j <= t of w_j                                    w_j = |gradient of log p_j in the logits|^2, for rho = 1
 *   B_t = sum of G_t W_t / (sum of W_t + eps)                       over the group's rollouts that sampled a token there
 *   A_t = G_t - B_t                                                 G_t = rewards to go
 *
 * rho is the importance weight, 1 on policy. Positions count all tokens, those between turns too;
 * `tir_optimal_token_baseline` counts sampled tokens alone. Where only the longest rollout goes on it would be its own
 * baseline: there B = 0. A group of one has 0.
 */

import { z } from "zod";
import { BrokenRecordError } from "../../../errors.ts";
import { type Rollout, rolloutLogprobs } from "../../../rollout.ts";
import { discountedReturns } from "../../returns.ts";
import {
  defineAdvantage,
  type RewardedGroup,
  type RewardedRollout,
  type StepAdvantages,
} from "../advantage.ts";
import { partsOfRow } from "../parts.ts";
import {
  creditOption,
  inRowOrder,
  inSampleOrder,
  readsRewardByCredit,
  rolloutAdvantageOf,
  type TokenCredit,
  type TokenRow,
  tokenRowOf,
  turnKeyOfCredit,
} from "./token-row.ts";

/** Options of both kinds. */
export const optimalBaselineOptions = {
  /** Added to the sum of weights. */
  epsilon: z.number().positive().default(1e-8),
  /** Whether the longest rollout has no baseline where it goes on alone. verl: handle_zero_tail. */
  zeroTail: z.boolean().default(true),
  /** Which rewards are followed. */
  credit: creditOption,
};

export interface OptimalBaselineOptions {
  readonly epsilon: number;
  readonly zeroTail: boolean;
  readonly credit: TokenCredit;
}

export const optimalTokenBaseline = defineAdvantage({
  kind: "optimal_token_baseline",
  options: optimalBaselineOptions,
  comparesGroup: true,
  readsSquares: true,
  readsReward: readsRewardByCredit,
  turnKey: turnKeyOfCredit,
  compute: (step, options) => againstOptimalBaselines(step, options, positionsOf),
});

/** The advantages of a step. @param positionsOf [N] where tokens of a row are compared. */
export function againstOptimalBaselines(
  step: readonly RewardedGroup[],
  options: OptimalBaselineOptions,
  positionsOf: (row: TokenRow, rollout: Rollout) => ArrayLike<number>,
): StepAdvantages {
  return {
    groups: step.map(({ rollouts }) => {
      const rows = rollouts.map((rewarded) => tokenRowOf(rewarded, options.credit));
      const group = rollouts.map((rewarded, index) => {
        const row = rows[index]!;
        return {
          returns: discountedReturns(row.rewards, 1),
          weights: gradientNorms(row, rewarded),
          positions: positionsOf(row, rewarded.rollout),
        };
      });
      return distancesFromBaselines(group, options).map((advantages, index) => {
        const row = rows[index]!;
        const rewarded = rollouts[index]!;
        const { returns } = group[index]!;
        const means = advantages.map((advantage, token) => returns[token]! - advantage);
        return {
          ...rolloutAdvantageOf(row, rewarded.rollout, advantages),
          parts: {
            ...partsOfRow(rewarded, row, options.credit, (rewards) => discountedReturns(rewards, 1)),
            mean: inSampleOrder(row, means),
          },
        };
      });
    }),
  };
}

/** One rollout of a group, N sampled tokens. */
export interface WeightedReturns {
  /** [N] rewards to go. */
  readonly returns: ArrayLike<number>;
  /** [N] w of each token. */
  readonly weights: ArrayLike<number>;
  /** [N] where each token is compared; increasing. */
  readonly positions: ArrayLike<number>;
}

/** @returns for each rollout of the group [N] the advantage of each token. */
export function distancesFromBaselines(
  group: readonly WeightedReturns[],
  { epsilon, zeroTail }: Pick<OptimalBaselineOptions, "epsilon" | "zeroTail">,
): number[][] {
  if (group.length === 1) return group.map(({ returns }) => Array.from(returns, () => 0));
  const sums = new Map<number, { weighted: number; weight: number }>();
  for (const { returns, weights, positions } of group) {
    let reached = 0;
    for (let token = 0; token < positions.length; token++) {
      reached += weights[token]!;
      const sum = sums.get(positions[token]!) ?? { weighted: 0, weight: 0 };
      sums.set(positions[token]!, sum);
      sum.weighted += returns[token]! * reached;
      sum.weight += reached;
    }
  }
  const ends = group.map(({ positions }) => (positions.length === 0 ? -1 : positions[positions.length - 1]!));
  return group.map(({ returns, positions }, index) => {
    const othersEnd = Math.max(...ends.filter((_, other) => other !== index));
    return Array.from(returns, (value, token) => {
      const position = positions[token]!;
      if (zeroTail && position > othersEnd) return value;
      const { weighted, weight } = sums.get(position)!;
      return value - weighted / (weight + epsilon);
    });
  });
}

/** [N] w of each token, on policy. */
function gradientNorms(row: TokenRow, { rollout, sumsOfSquares }: RewardedRollout): number[] {
  if (sumsOfSquares === undefined) {
    const { task, index } = rollout.slot;
    throw new BrokenRecordError(
      `an optimal token baseline needs the sum of squared probabilities at each token, and rollout ${index} of task ${task} has none`,
    );
  }
  const logprobs = inRowOrder(row, rolloutLogprobs(rollout));
  const squares = inRowOrder(row, sumsOfSquares);
  return Array.from(logprobs, (logprob, token) => gradientNorm(logprob, squares[token]!));
}

/** w of a token: |gradient of its log-probability in the logits|^2. */
export function gradientNorm(logprob: number, sumOfSquares: number, importance = 1): number {
  return (1 - 2 * Math.exp(logprob) + sumOfSquares) * importance ** 2;
}

/** Where the tokens of a row stand among all tokens of the samples, one sample after the other. */
function positionsOf({ places }: TokenRow, { samples }: Rollout): number[] {
  const positions: number[] = [];
  let before = 0;
  for (const { lossMask } of samples) {
    lossMask.forEach((bit, position) => {
      if (bit === 1) positions.push(before + position);
    });
    before += lossMask.length;
  }
  return Array.from(places, (place) => positions[place]!);
}
