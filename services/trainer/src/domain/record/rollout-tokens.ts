/**
 * The record of one rollout's trained tokens in a step: what each was worth, how far the policy had moved, what cut it, and what
 * it added to the gradient. Nothing is trained on it; it is written with the commit of the step.
 *
 * N sampled tokens, sample by sample. A single number stands for all tokens.
 */

import type { Slot } from "@hone/core";
import type { TokenCut } from "@hone/rl";

/** A number of each token, [N], or one for all. */
export type TokenColumn = number | Float32Array;

/** One update's view of the tokens; a rollout has one for each epoch. */
export interface TokenPass {
  readonly epoch: number;
  readonly minibatch: number;
  /** [N] log-probability under the weights before the update. */
  readonly logprobs: Float32Array;
  /** [N] the ratio that the loss took: of the token, or of those that it takes together. */
  readonly ratios: Float32Array;
  /** [N] d loss / d log pi(token), the term of the KL in the loss included. */
  readonly coefficients: Float32Array;
  /** [N] the part of it that is the term of the KL; absent = there is none. */
  readonly klCoefficients?: Float32Array;
  /** [N] d loss / d (logit of the token) at its own place: coefficient (1 - pi(token)) / temperature. */
  readonly pulls: Float32Array;
  /** [N] */
  readonly cuts: readonly TokenCut[];
}

export interface RolloutTokens {
  readonly slot: Slot;
  /** Whose part of the rollout it is; undefined = the whole, or the part of no role that the run names. */
  readonly role: string | undefined;
  /** What the judges gave. */
  readonly reward: number;
  /** What the shaping of the run file made of it, with what tokens lost by the KL. */
  readonly shapedReward: number;
  readonly whitening: { readonly mean: number; readonly scale: number } | undefined;
  /** Largest advantage that was left, without its sign. */
  readonly clip: number | undefined;
  /** Number of recorded tokens of each sample of the whole rollout. */
  readonly sampleTokens: readonly number[];
  /** [N] */
  readonly tokenIds: Uint32Array;
  /** [N] where each token stands in its sample. */
  readonly positions: Uint32Array;
  readonly behaviourLogprobs: Float32Array;
  /** Absent = the policy that sampled is the old one. */
  readonly oldLogprobs: Float32Array | undefined;
  readonly referenceLogprobs: Float32Array | undefined;
  /** As trained. */
  readonly advantages: TokenColumn;
  /** Parts before whitening and clipping. */
  readonly episode: TokenColumn;
  readonly turns: TokenColumn;
  readonly kl: TokenColumn;
  /** What teachers added after both. */
  readonly taught: TokenColumn;
  /** Undefined = the algorithm has no such number. */
  readonly mean: TokenColumn | undefined;
  readonly scale: number | undefined;
  readonly weights: TokenColumn;
  /** Factor of the correction; undefined = the run has none. */
  readonly corrections: TokenColumn | undefined;
  readonly passes: readonly TokenPass[];
}

/** A rollout by what its tokens added to a step. */
export interface RolloutShare {
  readonly slot: string;
  /** As in {@link RolloutTokens}. */
  readonly role?: string;
  readonly tokens: number;
  readonly reward: number;
  readonly advantage: number;
  /** Sum of |pull| over tokens and updates, and as a share of the step's. */
  readonly pull: number;
  readonly share: number;
}

/** A token by what it added to a step. */
export interface TokenShare {
  readonly slot: string;
  readonly role?: string;
  /** Index in the whole rollout. */
  readonly sample: number;
  readonly position: number;
  readonly tokenId: number;
  readonly pull: number;
  readonly share: number;
  readonly advantage: number;
  /** Of the last update that trained it. */
  readonly ratio: number;
  readonly coefficient: number;
  readonly cut: TokenCut;
}

/** An update of the step. */
export interface UpdateGradient {
  readonly epoch: number;
  readonly minibatch: number;
  readonly loss: number;
  /** Global norm of the gradient before it was scaled down. */
  readonly gradNorm: number;
  /** By which it was scaled, 1 = not at all. */
  readonly scaledBy: number;
  readonly tokens: number;
  /** Sum of |pull|. */
  readonly pull: number;
}

/** What made the gradient of a policy in a step; it counts every trained token, recorded or not. */
export interface StepGradient {
  /** The first ones; a step may have more. */
  readonly updates: readonly UpdateGradient[];
  readonly updateCount: number;
  readonly rollouts: number;
  readonly tokens: number;
  readonly recordedRollouts: number;
  readonly recordedTokens: number;
  /** Tokens in all updates, by what cut them. */
  readonly cuts: Readonly<Partial<Record<TokenCut, number>>>;
  /** Sum of |pull| over all updates. */
  readonly pull: number;
  /** Those that added most, the largest first. */
  readonly topRollouts: readonly RolloutShare[];
  readonly topTokens: readonly TokenShare[];
}

/** What a commit stores of the tokens that a policy learnt from in the step. */
export interface PolicyTokens {
  /** Undefined = the run's own. */
  readonly policy: string | undefined;
  readonly gradient: StepGradient;
  readonly rollouts: readonly RolloutTokens[];
  /** Largest size that the records of the run may take. */
  readonly maxBytes: number;
}
