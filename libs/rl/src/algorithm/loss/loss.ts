/**
 * What a loss is: options, the numbers of a token that it reads, and the constants that its formula has.
 *
 * A loss is computed by the engines: as a graph in `libs/train/src/losses/`, and for PyTorch in `hone_fsdp/losses/`. What
 * goes to them is a {@link LossTerm}, data without code, so that a new loss changes no message. Both turn the numbers of
 * each trained token into one number; weights, which carry the aggregation, and the sum are applied outside.
 */

import type { z } from "zod";

/** Numbers of a trained token that a loss may read, beside its log-probability under the weights that are trained. */
export const TokenInput = {
  /** Log-probability when the token was sampled. */
  behaviourLogprob: "behaviourLogprob",
  advantage: "advantage",
  /** Log-probability under the reference policy. */
  referenceLogprob: "referenceLogprob",
} as const;
export type TokenInput = (typeof TokenInput)[keyof typeof TokenInput];

/**
 * Largest |log ratio| that enters an exponential. e^20 is far outside every clip range, and its products stay finite
 * in float32, where an overflow to infinity would make the gradient of the unclipped side NaN.
 */
export const MAX_LOG_RATIO = 20;

/** The constants of a formula; an absent one leaves its part of the formula out. */
export type LossConstants = Readonly<Record<string, number>>;

/** A loss as engines take it. */
export interface LossTerm<Name extends string = string> {
  readonly name: Name;
  readonly constants: LossConstants;
}

/** A part of the objective that is computed for each token. */
export interface TokenLoss<Name extends string, Inputs extends TokenInput, Constants extends LossConstants> {
  /** By which engines know its formula. */
  readonly name: Name;
  readonly reads: readonly Inputs[];
  /** What its constants may be. */
  readonly constants: z.ZodType<Constants>;
}

/** A loss that a run file can name. `Options` are its keys in `algorithm.loss`, beside `kind` and those of every loss. */
export interface PolicyLoss<
  Name extends string = string,
  Inputs extends TokenInput = TokenInput,
  Constants extends LossConstants = LossConstants,
  Options extends z.ZodRawShape = z.ZodRawShape,
> extends TokenLoss<Name, Inputs, Constants> {
  readonly options: Options;
  constantsOf(options: z.output<z.ZodObject<Options>>): Constants;
  /**
   * Whether the formula holds the gradient of a token back, for the figure `clip_fraction`.
   * @param ratio probability under the weights that are trained, by that when it was sampled.
   */
  isClipped(ratio: number, advantage: number, constants: Constants): boolean;
}

/** Checks a loss' types where it is written. */
export function definePolicyLoss<
  const Name extends string,
  const Inputs extends TokenInput,
  Constants extends LossConstants,
  Options extends z.ZodRawShape,
>(loss: PolicyLoss<Name, Inputs, Constants, Options>): PolicyLoss<Name, Inputs, Constants, Options> {
  return loss;
}

/** The same for a term that no run file names as its loss. */
export function defineTokenLoss<
  const Name extends string,
  const Inputs extends TokenInput,
  Constants extends LossConstants,
>(loss: TokenLoss<Name, Inputs, Constants>): TokenLoss<Name, Inputs, Constants> {
  return loss;
}
