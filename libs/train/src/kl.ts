/**
 * Estimates of KL(policy || reference) from the sampled tokens, http://joschu.net/blog/kl-approx.html, with
 * d = log reference(token) - log policy(token):
 *
 *   k1   -d                 unbiased, of any sign. As a loss its expected gradient is 0: it shows a drift and holds nothing
 *   k2   d^2 / 2            its gradient is that of the KL; biased as an estimate
 *   k3   e^d - d - 1        unbiased and never negative; what verl calls low_var_kl
 *
 * Letters: E entries.
 */
import { Clip, Exp, Mul, Neg, Sub, type Tensor } from "@hone/tensor";
import { MAX_LOG_RATIO } from "./losses.ts";

export const KlKind = { k1: "k1", k2: "k2", k3: "k3" } as const;
export type KlKind = (typeof KlKind)[keyof typeof KlKind];

/** A KL term of the loss: added with the weights of the entries' loss. */
export interface KlConfig {
  readonly kind: KlKind;
  /** Above 0. */
  readonly coefficient: number;
}

type Estimators<T> = { readonly [K in KlKind]: (d: T) => T };

const OF_TENSORS: Estimators<Tensor> = {
  k1: (d) => Neg(d),
  k2: (d) => Mul(Mul(d, d), 0.5),
  k3: (d) => Sub(Sub(Exp(d), d), 1),
};

const OF_NUMBERS: Estimators<number> = {
  k1: (d) => -d,
  k2: (d) => (d * d) / 2,
  k3: (d) => Math.exp(d) - d - 1,
};

/** The estimate of every entry, [E], of log-probabilities [E]. */
export function buildKl(kind: KlKind, logprob: Tensor, referenceLogprob: Tensor): Tensor {
  return OF_TENSORS[kind](Clip(Sub(referenceLogprob, logprob), -MAX_LOG_RATIO, MAX_LOG_RATIO));
}

/** The same for one token. */
export function estimateKl(kind: KlKind, logprob: number, referenceLogprob: number): number {
  const d = referenceLogprob - logprob;
  return OF_NUMBERS[kind](Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, d)));
}
