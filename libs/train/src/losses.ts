/**
 * Losses as data: a name with its constants, given for each trained token (an entry).
 *
 * Letters: E entries. A loss turns the entries' log-probabilities into one number each, [E] -> [E]; weights, which
 * carry the aggregation, and the sum are applied outside. Losses know nothing of samples, groups or rewards.
 */
import { Clip, Exp, LessOrEqual, Max, Min, Mul, Neg, Sub, type Tensor, Where } from "@hone/tensor";
import { TrainingInputError } from "./errors.ts";

/** A named loss with its constants. */
export type LossConfig =
  | {
      readonly kind: "ppo_clip";
      /** The ratio counts down to 1 - clipLow. */
      readonly clipLow: number;
      /** The ratio counts up to 1 + clipHigh. */
      readonly clipHigh: number;
      /** Bound on the loss of entries with negative advantage, above 1; none by default. */
      readonly dualClip?: number;
    }
  | { readonly kind: "cross_entropy" };

/** What a loss reads, each [E]. */
export interface LossEntries {
  /** Log-probability of the entry's token under the weights being trained. */
  readonly logprob: Tensor;
  /** Log-probability when it was sampled. */
  readonly behaviourLogprob: Tensor;
  readonly advantage: Tensor;
}

/**
 * Largest |log ratio| that enters the exponential. e^20 is far outside every clip range, and its products stay finite
 * in float32, where an overflow to infinity would make the gradient of the unclipped side NaN.
 */
export const MAX_LOG_RATIO = 20;

/** Whether a loss reads the behaviour's log-probabilities and the advantages. */
export function comparesWithBehaviour(config: LossConfig): boolean {
  return config.kind !== "cross_entropy";
}

type LossBuilders = {
  readonly [K in LossConfig["kind"]]: (
    config: Extract<LossConfig, { kind: K }>,
    entries: LossEntries,
  ) => Tensor;
};

const LOSSES: LossBuilders = {
  /**
   * With r = pi(token) / behaviour(token) and A the advantage (PPO, https://arxiv.org/abs/1707.06347, with the two
   * bounds apart as in DAPO, https://arxiv.org/abs/2503.14476):
   *
   *   l = -min(r A, clip(r, 1 - low, 1 + high) A)
   *
   * With the dual clip c (https://arxiv.org/abs/1912.09729), for A < 0: l = -max(min(...), c A).
   */
  ppo_clip(config, { logprob, behaviourLogprob, advantage }) {
    const logRatio = Clip(Sub(logprob, behaviourLogprob), -MAX_LOG_RATIO, MAX_LOG_RATIO);
    const ratio = Exp(logRatio);
    const clipped = Clip(ratio, 1 - config.clipLow, 1 + config.clipHigh);
    const surrogate = Min(Mul(ratio, advantage), Mul(clipped, advantage));
    if (config.dualClip === undefined) return Neg(surrogate);
    const bounded = Max(surrogate, Mul(advantage, config.dualClip));
    return Neg(Where(LessOrEqual(advantage, 0), bounded, surrogate));
  },

  /** l = -log pi(token) */
  cross_entropy(_config, { logprob }) {
    return Neg(logprob);
  },
};

/** The loss of every entry, [E]. */
export function buildLoss(config: LossConfig, entries: LossEntries): Tensor {
  checkLoss(config);
  switch (config.kind) {
    case "ppo_clip":
      return LOSSES.ppo_clip(config, entries);
    case "cross_entropy":
      return LOSSES.cross_entropy(config, entries);
  }
}

/** @throws TrainingInputError where a constant is outside its range. */
export function checkLoss(config: LossConfig): void {
  if (config.kind === "cross_entropy") return;
  const { clipLow, clipHigh, dualClip } = config;
  if (!(clipLow >= 0 && clipLow <= 1) || !(clipHigh >= 0)) {
    const current = `clipLow ${clipLow}, clipHigh ${clipHigh}`;
    throw new TrainingInputError("use ppo_clip", "0 <= clipLow <= 1 and clipHigh >= 0", current);
  }
  if (dualClip !== undefined && !(dualClip > 1)) {
    throw new TrainingInputError("use ppo_clip", "dualClip is above 1", String(dualClip));
  }
}
