/**
 * How token losses become one number, as data: a weight per rollout that each of its sampled tokens carries.
 *
 *   loss = sum over rollouts i, sampled tokens t of  w_i * l_it
 *
 *   token_mean              w_i = 1 / sum of N        every token weighs the same (DAPO, Yu et al. 2025)
 *   token_sum               w_i = 1                   the same, and minibatches of more tokens move the weights further
 *   seq_mean_token_sum      w_i = 1 / B
 *   seq_mean_token_mean     w_i = 1 / (B * N_i)       every rollout weighs the same (GRPO as published)
 *   seq_mean_token_sum_norm w_i = 1 / (B * norm)      a constant in place of the length (Dr.GRPO)
 *
 * B rollouts of a minibatch, N_i sampled tokens of rollout i. A rollout counts once however many samples its history
 * makes, so that splitting a history changes no weight. The sums run over the whole minibatch, never over a
 * microbatch, so packing does not change the loss.
 */

/** How token losses are summed. Fixed vocabulary of the run file. */
export const Aggregation = {
  tokenMean: "token_mean",
  tokenSum: "token_sum",
  seqMeanTokenSum: "seq_mean_token_sum",
  seqMeanTokenMean: "seq_mean_token_mean",
  seqMeanTokenSumNorm: "seq_mean_token_sum_norm",
} as const;
export type Aggregation = (typeof Aggregation)[keyof typeof Aggregation];

/**
 * @param tokenCounts [B] sampled tokens of each rollout of the minibatch, each at least 1.
 * @param norm constant of `seq_mean_token_sum_norm`, usually the most tokens that a rollout may have.
 * @returns [B] the weight of each token of rollout i.
 */
export function lossWeights(
  tokenCounts: readonly number[],
  aggregation: Aggregation,
  norm: number,
): number[] {
  const rolloutCount = tokenCounts.length;
  switch (aggregation) {
    case Aggregation.tokenMean: {
      const total = tokenCounts.reduce((sum, count) => sum + count, 0);
      return tokenCounts.map(() => 1 / total);
    }
    case Aggregation.tokenSum:
      return tokenCounts.map(() => 1);
    case Aggregation.seqMeanTokenSum:
      return tokenCounts.map(() => 1 / rolloutCount);
    case Aggregation.seqMeanTokenMean:
      return tokenCounts.map((count) => 1 / (rolloutCount * count));
    case Aggregation.seqMeanTokenSumNorm:
      return tokenCounts.map(() => 1 / (rolloutCount * norm));
  }
}
