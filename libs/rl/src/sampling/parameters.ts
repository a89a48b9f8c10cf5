/**
 * The sampling parameters of a run: their names, defaults and ranges. Run files, messages on the bus, requests over HTTP and
 * the recommendations of models are read and checked by this table.
 */

import type { NumberRange } from "./number-range.ts";

/** Where a parameter acts on the distribution that tokens are drawn from. Its default changes nothing there. */
export const SamplingEffect = {
  /** On the logits, as the temperature and penalties do. */
  logits: "logits",
  /** It leaves out unlikely tokens. */
  truncation: "truncation",
  /** Not at all. */
  none: "none",
} as const;
export type SamplingEffect = (typeof SamplingEffect)[keyof typeof SamplingEffect];

export interface SamplingParameter {
  /** Its name on the bus, at inference servers, in requests over HTTP and in `generation_config.json`. */
  readonly snakeName: string;
  readonly default: number;
  readonly effect: SamplingEffect;
  /** What every model call may have. */
  readonly range: NumberRange;
  /** What run files may have. @default range */
  readonly inRunFiles?: NumberRange;
  /** What requests over HTTP may have; values below the range mean its lowest. @default range */
  readonly inRequests?: NumberRange;
  /** Whether a model call may leave it out, which means its default. On the bus, 0 then does too. @default false */
  readonly isOptional?: boolean;
}

export const SAMPLING_PARAMETERS = {
  /** 0 = always the most likely token; otherwise logits are divided by it. At 100 all tokens are practically equally likely. */
  temperature: {
    snakeName: "temperature",
    default: 1,
    effect: SamplingEffect.logits,
    range: { lowest: 0, highest: 100 },
    // The limit of OpenAI's own service.
    inRequests: { lowest: 0, highest: 2 },
  },
  /** Smallest set of tokens whose probability reaches this; 1 = all. */
  topP: {
    snakeName: "top_p",
    default: 1,
    effect: SamplingEffect.truncation,
    range: { lowest: 0, isAbove: true, highest: 1 },
  },
  /** Most likely tokens considered; 0 = all. */
  topK: {
    snakeName: "top_k",
    default: 0,
    effect: SamplingEffect.truncation,
    range: { lowest: 0, isWhole: true },
    // At vLLM -1 means all tokens.
    inRequests: { lowest: -1, highest: 1_000_000, isWhole: true },
  },
  /** Smallest probability of a token, relative to that of the most likely one; 0 = all. */
  minP: {
    snakeName: "min_p",
    default: 0,
    effect: SamplingEffect.truncation,
    range: { lowest: 0, highest: 1 },
    isOptional: true,
  },
  /** Positive logits of tokens that are in the context are divided by it, negative ones multiplied; 1 = none. At 100 only new tokens are sampled. */
  repetitionPenalty: {
    snakeName: "repetition_penalty",
    default: 1,
    effect: SamplingEffect.logits,
    range: { lowest: 0, isAbove: true, highest: 100 },
    isOptional: true,
  },
  /** Largest number of tokens of one turn. */
  maxNewTokens: {
    snakeName: "max_new_tokens",
    default: 256,
    effect: SamplingEffect.none,
    range: { lowest: 1, isWhole: true },
    inRunFiles: { lowest: 1, highest: 65_536, isWhole: true },
  },
} as const satisfies Readonly<Record<string, SamplingParameter>>;
