/**
 * What a loss is: options, the numbers of a token that it reads, and the constants that its formula has.
 *
 * A loss is computed by the engines: as a graph in `libs/train/src/losses/`, and for PyTorch in `hone_fsdp/losses/`. What
 * goes to them is a {@link LossTerm}, data without code, so that a new loss changes no message. Both turn the numbers of
 * each trained token into one number; weights, which carry the aggregation, and the sum are applied outside.
 */

import type { z } from "zod";
import type { Aggregation } from "./aggregation.ts";
import type { Expression } from "./expression.ts";
import type { TokenCut } from "./token-cut.ts";
import type { GroupInput, TokenInput } from "./token-numbers.ts";

/** The constants of a formula; an absent one leaves its part of the formula out. */
export type LossConstants = Readonly<Record<string, number>>;

/** A loss as engines take it. */
export interface LossTerm<Name extends string = string> {
  readonly name: Name;
  readonly constants: LossConstants;
  /** The formula itself, where it is one of the user's. */
  readonly expression?: Expression;
}

/** A part of the objective that is computed for each token. */
export interface TokenLoss<Name extends string, Inputs extends TokenInput, Constants extends LossConstants> {
  /** By which engines know its formula. */
  readonly name: Name;
  readonly reads: readonly Inputs[];
  /** Which tokens belong together with these constants, where the formula takes a mean over them. @default undefined, none */
  groupedBy?(constants: NoInfer<Constants>): GroupInput | undefined;
  /** What its constants may be. */
  readonly constants: z.ZodType<Constants>;
  /**
   * The derivative of a token's loss with respect to its log-probability, with everything that has no gradient held fixed;
   * for the record of trained tokens (slopes.ts). @default undefined, it is a function of something else
   */
  slope?(token: TokenFigures, constants: NoInfer<Constants>): number;
  /**
   * The same where the gradient of a token's loss also reaches the other tokens that are taken together with it; goes before `slope`.
   * @param tokens of one group
   * @param weights of the tokens in the loss
   * @returns for each token the derivative of the sum of weight * loss over the group
   */
  slopesOfGroup?(
    tokens: readonly TokenFigures[],
    weights: readonly number[],
    constants: NoInfer<Constants>,
  ): readonly number[];
}

/** A trained token when an update begins, for the figure `clip_fraction` and the record of trained tokens. */
export interface TokenFigures {
  /** Probability under the weights that are trained, by that when it was sampled. */
  readonly ratio: number;
  /** e^(mean log ratio) of the tokens that the loss takes together; `ratio` where it takes none together. */
  readonly groupRatio: number;
  readonly logprob: number;
  readonly behaviourLogprob: number;
  readonly advantage: number;
  readonly reward: number;
  readonly isSelected: boolean;
  /** Log-probability under the reference policy; absent = there is none. */
  readonly referenceLogprob?: number;
}

/** All tokens of a minibatch, in the order of its samples, before an update. N tokens. */
export interface ScoredTokens {
  /** [N] log-probability under the weights that are trained. */
  readonly logprobs: ArrayLike<number>;
  /** [N] log-probability when the token was sampled. */
  readonly behaviourLogprobs: ArrayLike<number>;
  /** [N] */
  readonly advantages: ArrayLike<number>;
}

/** A loss that a run file can name. `Options` are its keys in `algorithm.loss`, beside `kind` and those of every loss. */
export interface PolicyLoss<
  Name extends string = string,
  Inputs extends TokenInput = TokenInput,
  Constants extends LossConstants = LossConstants,
  Options extends z.ZodRawShape = z.ZodRawShape,
> extends TokenLoss<Name, Inputs, Constants> {
  readonly options: Options;
  /** `algorithm.loss.aggregate` where the run file does not say. @default token_mean */
  readonly aggregate?: Aggregation;
  /** Whether a token has a gradient also where its advantage is 0. @default false */
  readonly trainsWithoutAdvantage?: boolean;
  constantsOf(options: z.output<z.ZodObject<Options>>): Constants;
  /** What holds the gradient of a token back or bounds its weight. @default nothing does */
  cut?(token: TokenFigures, constants: NoInfer<Constants>): TokenCut;
  slope(token: TokenFigures, constants: NoInfer<Constants>): number;
  /**
   * Chooses tokens from all of a minibatch, for the input `selected`. The trainer then scores a minibatch before each
   * update, which takes a forward pass; where this is absent it does not. The same tokens must give the same choice.
   * @returns [N] whether each token is chosen
   */
  select?(tokens: ScoredTokens, constants: Constants): readonly boolean[];
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
