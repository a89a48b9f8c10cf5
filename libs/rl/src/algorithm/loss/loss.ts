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

/** Numbers of a trained token that a loss may read, beside what the head under training says of it ({@link HeadScore}). */
export const TokenInput = {
  /** Log-probability when the token was sampled. */
  behaviourLogprob: "behaviourLogprob",
  advantage: "advantage",
  /** Log-probability under the reference policy. */
  referenceLogprob: "referenceLogprob",
  /** What the judges made the token's rollout worth, before the run shaped it. */
  reward: "reward",
  /** 1 where the loss chose the token from all tokens of the minibatch (`PolicyLoss.select`), else 0. */
  selected: "selected",
  /** A critic's value of the token's place before the first update of the step. */
  oldValue: "oldValue",
  /** What a critic is to predict there. */
  return: "return",
  /** Number of the token's sample; tokens of one sample have the same. */
  sequence: "sequence",
  /** Number of the token's segment: an unbroken run of trained tokens in a sample, which is a turn. */
  segment: "segment",
} as const;
export type TokenInput = (typeof TokenInput)[keyof typeof TokenInput];

/** What a loss is a function of: the one number that the head under training gives each trained token. */
export const HeadScore = {
  /** Log-probability of the token, of a language model. */
  logprob: "logprob",
  /** What a critic expects to come from the token on. */
  value: "value",
} as const;
export type HeadScore = (typeof HeadScore)[keyof typeof HeadScore];

/** Inputs that say which tokens belong together. They follow from the samples, so that nobody has to supply them. */
export type GroupInput = "sequence" | "segment";

export function isGroupInput(name: TokenInput): name is GroupInput {
  return name === TokenInput.sequence || name === TokenInput.segment;
}

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
}

/** A trained token when an update begins, for the figure `clip_fraction`. */
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
  /** Whether the formula holds the gradient of a token back or bounds its weight, for the figure `clip_fraction`. */
  isClipped(token: TokenFigures, constants: Constants): boolean;
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
