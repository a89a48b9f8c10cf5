/**
 * Rotary embedding: the angles by which a position is rotated (https://arxiv.org/abs/2104.09864), and how they are scaled for
 * longer contexts. Names and constants are those of `rope_scaling` (transformers 4) and `rope_parameters` (transformers 5).
 *
 *   angle[position, i] = position * frequency[i]        frequency[i] = theta^(-2i / D), i < D / 2
 */

import { ModelSpecError, show } from "../errors.ts";
import { isRecord, type ModelConfig, numberOr, requireNumber } from "../model/config-fields.ts";

/** How frequencies are scaled. */
export type RopeScaling =
  | { readonly kind: "none" }
  /** All frequencies are divided by one factor (https://arxiv.org/abs/2306.15595). */
  | { readonly kind: "linear"; readonly factor: number }
  /** Llama 3.1: low frequencies are divided, high ones are kept, with a ramp between them (https://arxiv.org/abs/2407.21783). */
  | {
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalMaxPositions: number;
    }
  /** YaRN (https://arxiv.org/abs/2309.00071). */
  | {
      readonly kind: "yarn";
      readonly factor: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      readonly originalMaxPositions: number;
      /** Whether the ends of the ramp are rounded to whole dimensions. */
      readonly isTruncated: boolean;
      /** Factor of cosines and sines. */
      readonly attentionFactor: number;
    };

export interface Rope {
  readonly theta: number;
  readonly scaling: RopeScaling;
}

const DEFAULT_THETA = 10_000;

/** Reads the rotary constants of a configuration. @throws ModelSpecError that names an unsupported kind of scaling. */
export function readRope(config: ModelConfig): Rope {
  const field = isRecord(config.rope_parameters) ? "rope_parameters" : "rope_scaling";
  const given = config[field];
  const constants = isRecord(given) ? given : {};
  const theta = numberOr(constants, "rope_theta", numberOr(config, "rope_theta", DEFAULT_THETA));
  const share = numberOr(constants, "partial_rotary_factor", numberOr(config, "partial_rotary_factor", 1));
  if (share !== 1) {
    const problem = `partial_rotary_factor is ${share}; Hone supports only 1, a rotary embedding of whole heads`;
    throw new ModelSpecError("partial_rotary_factor", problem);
  }
  return { theta, scaling: readScaling(config, constants, field) };
}

function readScaling(config: ModelConfig, constants: ModelConfig, field: string): RopeScaling {
  const kind = constants.rope_type ?? constants.type ?? "default";
  const originalMaxPositions = () =>
    numberOr(constants, "original_max_position_embeddings", requireNumber(config, "max_position_embeddings"));
  switch (kind) {
    case "default":
      return { kind: "none" };
    case "linear":
      return { kind: "linear", factor: requireNumber(constants, "factor") };
    case "llama3":
      return {
        kind: "llama3",
        factor: requireNumber(constants, "factor"),
        lowFreqFactor: requireNumber(constants, "low_freq_factor"),
        highFreqFactor: requireNumber(constants, "high_freq_factor"),
        originalMaxPositions: originalMaxPositions(),
      };
    case "yarn": {
      const factor = requireNumber(constants, "factor");
      return {
        kind: "yarn",
        factor,
        betaFast: numberOr(constants, "beta_fast", 32),
        betaSlow: numberOr(constants, "beta_slow", 1),
        originalMaxPositions: originalMaxPositions(),
        isTruncated: constants.truncate !== false,
        attentionFactor: numberOr(constants, "attention_factor", yarnAttentionFactor(constants, factor)),
      };
    }
    default:
      throw new ModelSpecError(
        field,
        `${field} has the type ${show(kind)}; Hone supports "default", "linear", "llama3" and "yarn"`,
      );
  }
}

function yarnAttentionFactor(constants: ModelConfig, factor: number): number {
  const temperature = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  const [mscale, mscaleAll] = ["mscale", "mscale_all_dim"].map((name) => numberOr(constants, name, 0));
  return mscale && mscaleAll ? temperature(mscale) / temperature(mscaleAll) : temperature(1);
}

/** The fields of `config.json` that {@link readRope} reads back. */
export function writeRope({ theta, scaling }: Rope): Record<string, unknown> {
  switch (scaling.kind) {
    case "none":
      return { rope_theta: theta };
    case "linear":
      return { rope_theta: theta, rope_scaling: { rope_type: "linear", factor: scaling.factor } };
    case "llama3":
      return {
        rope_theta: theta,
        rope_scaling: {
          rope_type: "llama3",
          factor: scaling.factor,
          low_freq_factor: scaling.lowFreqFactor,
          high_freq_factor: scaling.highFreqFactor,
          original_max_position_embeddings: scaling.originalMaxPositions,
        },
      };
    case "yarn":
      return {
        rope_theta: theta,
        rope_scaling: {
          rope_type: "yarn",
          factor: scaling.factor,
          beta_fast: scaling.betaFast,
          beta_slow: scaling.betaSlow,
          original_max_position_embeddings: scaling.originalMaxPositions,
          truncate: scaling.isTruncated,
          attention_factor: scaling.attentionFactor,
        },
      };
    default:
      return scaling satisfies never;
  }
}

/** Factor of cosines and sines. */
export function rotaryFactor({ scaling }: Rope): number {
  return scaling.kind === "yarn" ? scaling.attentionFactor : 1;
}

/** [D/2] frequencies after scaling, rounded where PyTorch rounds, because large positions multiply every difference. */
export function rotaryFrequencies({ theta, scaling }: Rope, headDim: number): number[] {
  const half = headDim / 2;
  const plain = Array.from({ length: half }, (_, i) => Math.fround(1 / Math.fround(theta ** (i / half))));
  switch (scaling.kind) {
    case "none":
      return plain;
    case "linear":
      return plain.map((frequency) => frequency / scaling.factor);
    case "llama3":
      return plain.map((frequency) => {
        const { factor, lowFreqFactor, highFreqFactor, originalMaxPositions } = scaling;
        const waves = (originalMaxPositions * frequency) / (2 * Math.PI);
        const share = Math.min(1, Math.max(0, (waves - lowFreqFactor) / (highFreqFactor - lowFreqFactor)));
        return mix(frequency / factor, frequency, share);
      });
    case "yarn": {
      const [low, high] = yarnRamp(theta, scaling, headDim);
      return plain.map((frequency, i) => {
        const share = 1 - Math.min(1, Math.max(0, (i - low) / (high - low)));
        return mix(frequency / scaling.factor, frequency, share);
      });
    }
    default:
      return scaling satisfies never;
  }
}

/** The dimensions between which YaRN changes from keeping frequencies to dividing them. */
function yarnRamp(
  theta: number,
  { betaFast, betaSlow, originalMaxPositions, isTruncated }: Extract<RopeScaling, { kind: "yarn" }>,
  headDim: number,
): [low: number, high: number] {
  const dimensionOf = (turns: number) =>
    (headDim * Math.log(originalMaxPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [fast, slow] = [dimensionOf(betaFast), dimensionOf(betaSlow)];
  const low = Math.max(isTruncated ? Math.floor(fast) : fast, 0);
  const high = Math.min(isTruncated ? Math.ceil(slow) : slow, headDim - 1);
  // Equal ends would divide by zero.
  return [low, high === low ? high + 0.001 : high];
}

function mix(from: number, to: number, share: number): number {
  return (1 - share) * from + share * to;
}
