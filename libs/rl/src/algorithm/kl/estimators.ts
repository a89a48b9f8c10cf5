/**
 * Estimates of KL(policy || reference) from the sampled tokens, http://joschu.net/blog/kl-approx.html, with
 * d = log reference(token) - log policy(token):
 *
 *   k1   -d                 unbiased, of any sign. As a loss its expected gradient is 0: it shows a drift and holds nothing
 *   k2   d^2 / 2            its gradient is that of the KL; biased as an estimate
 *   k3   e^d - d - 1        unbiased and never negative; what verl calls low_var_kl
 */

import { z } from "zod";
import { defineTokenLoss, type LossTerm, MAX_LOG_RATIO } from "../loss/loss.ts";

export const KlKind = { k1: "k1", k2: "k2", k3: "k3" } as const;
export type KlKind = (typeof KlKind)[keyof typeof KlKind];

/** `algorithm.kl` of a run file: distance from the reference policy, version 0, as a term of the loss. */
export const klSchema = z
  .strictObject({
    /** 0 = none, and no reference policy is held. */
    coefficient: z.number().min(0).max(1e3).default(0),
    /** How it is estimated from the sampled tokens. */
    kind: z.enum(KlKind).default(KlKind.k3),
  })
  .prefault({});

export type KlConfig = z.output<typeof klSchema>;

const constants = z.strictObject({ coefficient: z.number().positive() });
const reads = ["referenceLogprob"] as const;

/** The estimates as terms of the loss, each multiplied by its coefficient. */
export const klLosses = {
  kl_k1: defineTokenLoss({ name: "kl_k1", reads, constants }),
  kl_k2: defineTokenLoss({ name: "kl_k2", reads, constants }),
  kl_k3: defineTokenLoss({ name: "kl_k3", reads, constants }),
};

/** The term of a run; undefined where it wants none. */
export function klTerm({ kind, coefficient }: KlConfig): LossTerm<keyof typeof klLosses> | undefined {
  return coefficient === 0 ? undefined : { name: `kl_${kind}`, constants: { coefficient } };
}

const ESTIMATORS: { readonly [K in KlKind]: (d: number) => number } = {
  k1: (d) => -d,
  k2: (d) => (d * d) / 2,
  k3: (d) => Math.exp(d) - d - 1,
};

/** The estimate for one token. */
export function estimateKl(kind: KlKind, logprob: number, referenceLogprob: number): number {
  const d = referenceLogprob - logprob;
  return ESTIMATORS[kind](Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, d)));
}
