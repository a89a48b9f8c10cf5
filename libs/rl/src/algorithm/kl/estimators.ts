/**
 * Estimates of KL(policy || reference) from the sampled tokens, http://joschu.net/blog/kl-approx.html, with
 * d = log reference(token) - log policy(token):
 *
 *   k1   -d                 unbiased, of any sign. As a loss its expected gradient is 0: it shows a drift and holds nothing
 *   abs  |d|                a distance, not an estimate of the KL
 *   k2   d^2 / 2            its gradient is that of the KL; biased as an estimate
 *   k3   e^d - d - 1        unbiased and never negative; what verl calls low_var_kl. It counts up to 10
 *
 * As terms of the loss, k1, abs and k3 have a straight-through form, written with a `+`: the value of the estimate with the
 * gradient of k2, which is that of the KL. k2 is its own.
 */

import { z } from "zod";
import { defineTokenLoss, type LossTerm, type TokenLoss } from "../loss/loss.ts";
import { MAX_LOG_RATIO } from "../loss/token-numbers.ts";
import { clip } from "../statistics.ts";

export const KlKind = { k1: "k1", abs: "abs", k2: "k2", k3: "k3" } as const;
export type KlKind = (typeof KlKind)[keyof typeof KlKind];

/** Kinds of the term of the loss: the estimates, and their straight-through forms. */
export const KlLossKind = { ...KlKind, k1Through: "k1+", absThrough: "abs+", k3Through: "k3+" } as const;
export type KlLossKind = (typeof KlLossKind)[keyof typeof KlLossKind];

/** `algorithm.kl` of a run file: distance from the reference policy, version 0, as a term of the loss. */
export const klSchema = z
  .strictObject({
    /** 0 = none, and no reference policy is held. */
    coefficient: z.number().min(0).max(1e3).default(0),
    /** How it is estimated from the sampled tokens. */
    kind: z.enum(KlLossKind).default(KlLossKind.k3),
  })
  .prefault({});

export type KlConfig = z.output<typeof klSchema>;

/** Largest k3 of a token, which grows with the ratio itself: verl and ROLL stop there, so that one token cannot be everything. */
export const MAX_K3 = 10;

type KlConstants = { coefficient: number; straightThrough?: number };
const constants = z.strictObject({
  coefficient: z.number().positive(),
  /** 1 = the gradient is that of k2; absent = that of the estimate. */
  straightThrough: z.literal(1).optional(),
}) as z.ZodType<KlConstants>;
const reads = ["referenceLogprob"] as const;

/** The estimates as terms of the loss, each multiplied by its coefficient. */
export const klLosses = {
  kl_k1: defineTokenLoss({ name: "kl_k1", reads, constants, slope: slopeOf(() => 1) }),
  kl_abs: defineTokenLoss({ name: "kl_abs", reads, constants, slope: slopeOf((d) => -Math.sign(d)) }),
  kl_k2: defineTokenLoss({ name: "kl_k2", reads, constants, slope: slopeOf((d) => -d) }),
  kl_k3: defineTokenLoss({
    name: "kl_k3",
    reads,
    constants,
    slope: slopeOf((d) =>
      Math.abs(d) > MAX_LOG_RATIO || Math.exp(d) - d - 1 > MAX_K3 ? 0 : 1 - Math.exp(d),
    ),
  }),
};

/** @param ofEstimate the derivative of an estimate with respect to log policy(token), from d; that of k2 is -d. */
function slopeOf(
  ofEstimate: (d: number) => number,
): NonNullable<TokenLoss<string, never, KlConstants>["slope"]> {
  return ({ logprob, referenceLogprob = Number.NaN }, { coefficient, straightThrough }) => {
    const d = referenceLogprob - logprob;
    return coefficient * (straightThrough === undefined ? ofEstimate(d) : -d);
  };
}

/** The estimate whose value a kind has. */
export function estimateOf(kind: KlLossKind): KlKind {
  return kind.replace("+", "") as KlKind;
}

/** The term of a run; undefined where it wants none. */
export function klTerm({ kind, coefficient }: KlConfig): LossTerm<keyof typeof klLosses> | undefined {
  if (coefficient === 0) return undefined;
  const isStraightThrough = kind.endsWith("+");
  return {
    name: `kl_${estimateOf(kind)}`,
    constants: { coefficient, ...(isStraightThrough && { straightThrough: 1 }) },
  };
}

const ESTIMATORS: { readonly [K in KlKind]: (d: number) => number } = {
  k1: (d) => -d,
  abs: (d) => Math.abs(d),
  k2: (d) => (d * d) / 2,
  k3: (d) => {
    const bounded = clip(d, MAX_LOG_RATIO);
    return clip(Math.exp(bounded) - bounded - 1, MAX_K3);
  },
};

/** The estimate for one token. */
export function estimateKl(kind: KlKind, logprob: number, referenceLogprob: number): number {
  return ESTIMATORS[kind](referenceLogprob - logprob);
}
