/**
 * AdamW (Loshchilov and Hutter, https://arxiv.org/abs/1711.05101), with the same steps as `torch.optim.AdamW`:
 *
 *   p <- p (1 - lr decay)                     matrices and embeddings only, never norms and biases
 *   m <- b1 m + (1 - b1) g
 *   v <- b2 v + (1 - b2) g^2
 *   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
 *
 * Arithmetic is in float64; state and parameters are float32. Parameters are updated in place, because training sessions read
 * them in place; the state is updated in place too.
 */
import type { AdamWState } from "@hone/checkpoint";
import type { ParameterInfo } from "@hone/nn";

/** Constants of an update. */
export interface AdamWOptions {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** Defaults for all constants but the learning rate; a beta2 of 0.95 is usual for language models. */
export const ADAMW_DEFAULTS: Omit<AdamWOptions, "learningRate"> = {
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
};

/**
 * Makes one update of all trained parameters.
 *
 * @param gradientFactor multiplies every gradient; used for clipping.
 */
export function updateAdamW(
  parameters: readonly ParameterInfo[],
  weights: Readonly<Record<string, Float32Array>>,
  gradients: Readonly<Record<string, Float32Array>>,
  state: AdamWState,
  options: AdamWOptions,
  gradientFactor = 1,
): void {
  state.step += 1;
  for (const { name, kind } of parameters) {
    const decay = kind === "norm" || kind === "bias" ? 0 : options.weightDecay;
    const moments = { m: state.m[name]!, v: state.v[name]! };
    updateParameter(
      weights[name]!,
      gradients[name]!,
      moments,
      state.step,
      { ...options, weightDecay: decay },
      gradientFactor,
    );
  }
}

/** Makes one update of one parameter; `step` counts from 1. */
export function updateParameter(
  parameter: Float32Array,
  gradient: Float32Array,
  { m, v }: { readonly m: Float32Array; readonly v: Float32Array },
  step: number,
  options: AdamWOptions,
  gradientFactor: number,
): void {
  const { learningRate, beta1, beta2, epsilon, weightDecay } = options;
  const stepSize = learningRate / (1 - beta1 ** step);
  const vFactor = 1 / Math.sqrt(1 - beta2 ** step);
  const keep = 1 - learningRate * weightDecay;
  for (let i = 0; i < parameter.length; i++) {
    const g = gradient[i]! * gradientFactor;
    const mean = beta1 * m[i]! + (1 - beta1) * g;
    const square = beta2 * v[i]! + (1 - beta2) * g * g;
    m[i] = mean;
    v[i] = square;
    parameter[i] = parameter[i]! * keep - (stepSize * mean) / (Math.sqrt(square) * vFactor + epsilon);
  }
}
