/** The record of a rollout's trained tokens as the page and programs read it: token by token, in the order of the samples. */

import type { LedgerReply, TokenPass, TokenRecord } from "@hone/proto-gen/ledger";
import type { TokenText } from "./rollout-view.ts";

/** What the ledger can be asked for here. */
export type LedgerQuestion =
  | { readonly kind: "gradient"; readonly step: number }
  | { readonly kind: "tokens"; readonly slot: string };

/** Asks a trainer; undefined where none answers. */
export type AskLedger = (runId: string, question: LedgerQuestion) => Promise<LedgerReply | undefined>;

/** A token in one update. */
interface PassView {
  readonly epoch: number;
  readonly minibatch: number;
  /** Under the weights before the update. */
  readonly logprob: number;
  readonly ratio: number;
  /** See TokenCut of @hone/rl. */
  readonly cut: string;
  /** d loss / d log pi(token). */
  readonly coefficient: number;
  /** The part of it that is the term of the KL; null = there is none. */
  readonly klCoefficient: number | null;
  /** d loss / d (logit of the token), at its own place. */
  readonly pull: number;
}

interface TokenFiguresView {
  readonly sample: number;
  readonly position: number;
  readonly id: number;
  readonly text?: string;
  readonly behaviourLogprob: number;
  readonly oldLogprob: number;
  readonly referenceLogprob: number | null;
  readonly advantage: number;
  readonly parts: {
    readonly episode: number;
    readonly turns: number;
    readonly kl: number;
    readonly taught: number;
    readonly mean: number | null;
    readonly scale: number | null;
  };
  readonly weight: number;
  readonly correction: number | null;
  /** Share of the policy's sum of |pull| in the step. */
  readonly share: number;
  readonly passes: readonly PassView[];
}

/** What a step made of a rollout's tokens. */
export interface RolloutFiguresView {
  readonly slot: string;
  /** Null where nothing is recorded. */
  readonly step: number | null;
  /** One for each role that played a part of the rollout; one alone where the run names no roles. */
  readonly parts: readonly PartFiguresView[];
}

export interface PartFiguresView {
  /** Whose part it is; null = the whole, or the part of no role that the run names. */
  readonly role: string | null;
  /** The policy that learnt from it; null = the run's own. */
  readonly policy: string | null;
  readonly reward: number;
  readonly shapedReward: number;
  readonly whitening: { readonly mean: number; readonly scale: number } | null;
  readonly advantageClip: number | null;
  /** Share of the part of the policy's sum of |pull| in the step. */
  readonly share: number;
  readonly tokens: readonly TokenFiguresView[];
}

/** A rollout, or a role's part of it, by what its tokens added to a policy's gradient. */
interface RolloutShareView {
  readonly slot: string;
  readonly role?: string;
  readonly tokens: number;
  readonly reward: number;
  readonly advantage: number;
  readonly share: number;
}

interface TokenShareView {
  readonly slot: string;
  readonly role?: string;
  readonly sample: number;
  readonly position: number;
  readonly tokenId: number;
  readonly text?: string;
  readonly advantage: number;
  readonly ratio: number;
  readonly cut: string;
  readonly share: number;
}

/** What made the gradients of a step, one for each policy that learnt. */
export interface StepGradientView {
  readonly step: number;
  readonly policies: ReadonlyArray<{
    /** Null = the run's own. */
    readonly policy: string | null;
    readonly updates: ReadonlyArray<{ readonly gradNorm: number }>;
    readonly updateCount: number;
    readonly tokens: number;
    readonly rollouts: number;
    readonly topRollouts: readonly RolloutShareView[];
    readonly topTokens: readonly TokenShareView[];
  }>;
}

/** @param stepPull the policy's sum of |pull| in the step. */
export function tokenFiguresOf(record: TokenRecord, stepPull: number, textOf: TokenText): PartFiguresView {
  const samples = record.sampleTokens.flatMap((count, sample) => Array<number>(count).fill(sample));
  const share = (pull: number) => (stepPull === 0 ? 0 : pull / stepPull);
  const tokens = record.tokenIds.map((id, token): TokenFiguresView => {
    const text = textOf(id);
    const passes = record.passes.map((pass) => passView(pass, token));
    const behaviourLogprob = record.behaviourLogprobs[token]!;
    return {
      sample: samples[token] ?? 0,
      position: record.positions[token] ?? 0,
      id,
      ...(text !== undefined && { text }),
      behaviourLogprob,
      oldLogprob: at(record.oldLogprobs, token) ?? behaviourLogprob,
      referenceLogprob: at(record.referenceLogprobs, token),
      advantage: at(record.advantages, token) ?? 0,
      parts: {
        episode: at(record.episodeParts, token) ?? 0,
        turns: at(record.turnParts, token) ?? 0,
        kl: at(record.klParts, token) ?? 0,
        taught: at(record.taughtParts, token) ?? 0,
        mean: at(record.means, token),
        scale: at(record.scales, token),
      },
      weight: at(record.weights, token) ?? 0,
      correction: at(record.corrections, token),
      share: share(passes.reduce((sum, { pull }) => sum + Math.abs(pull), 0)),
      passes,
    };
  });
  const { role, policy, reward, shapedReward, whiteningMean, whiteningScale, advantageClip } = record;
  return {
    role: role || null,
    policy: policy || null,
    reward,
    shapedReward,
    whitening: whiteningScale === 0 ? null : { mean: whiteningMean, scale: whiteningScale },
    advantageClip: advantageClip === 0 ? null : advantageClip,
    share: tokens.reduce((sum, token) => sum + token.share, 0),
    tokens,
  };
}

function passView(pass: TokenPass, token: number): PassView {
  return {
    epoch: pass.epoch,
    minibatch: pass.minibatch,
    logprob: pass.logprobs[token]!,
    ratio: pass.ratios[token]!,
    cut: pass.cutNames[pass.cuts[token] ?? 0] ?? "none",
    coefficient: pass.coefficients[token]!,
    klCoefficient: at(pass.klCoefficients, token),
    pull: pass.pulls[token]!,
  };
}

/** The number of a token in a list of which one number stands for all; null of an empty list. */
function at(list: readonly number[], token: number): number | null {
  return (list.length === 1 ? list[0] : list[token]) ?? null;
}
