/**
 * The specification of a dense decoder: everything that its graph depends on. hugging-face-config.ts reads it from
 * `config.json` and writes it.
 */

import type { RopeScaling } from "../attention/rotary.ts";
import { ModelSpecError } from "../errors.ts";

/** Families of checkpoints; each has its file in architectures/. */
export type ModelFamily = "llama" | "qwen2" | "qwen3";

/**
 * What a model computes from a hidden state: logits over the vocabulary, or one number, the value that a critic expects to
 * come.
 */
export type ModelHead = "language" | "value";

/** Sizes and constants of a model; everything that its graph depends on. */
export interface ModelSpec {
  /** The family whose configuration and names its checkpoints use. */
  readonly family: ModelFamily;
  readonly head: ModelHead;
  readonly vocabSize: number;
  /** Width of the residual stream. */
  readonly hiddenSize: number;
  readonly numLayers: number;
  /** Query heads. */
  readonly numHeads: number;
  /** Key and value heads; divides `numHeads`. */
  readonly numKeyValueHeads: number;
  /** Width of one head, even; `numHeads * headDim` may differ from `hiddenSize`. */
  readonly headDim: number;
  /** Width of the gated feed-forward layer. */
  readonly intermediateSize: number;
  /** Projections of attention that add a bias: none; queries, keys and values; or these and the output. */
  readonly attentionBias: "none" | "inputs" | "all";
  /** Whether the feed-forward projections add a bias. */
  readonly hasMlpBias: boolean;
  /** Whether each head of queries and keys is normalised before the rotary embedding. */
  readonly hasQkNorm: boolean;
  /** Base of the rotary angles. */
  readonly ropeTheta: number;
  readonly ropeScaling: RopeScaling;
  /** Added to the mean square in every norm. */
  readonly rmsNormEps: number;
  /** Whether the head is the embedding table; never with a value head. */
  readonly isTied: boolean;
  /** The number of positions that the model is meant for. It is stored for other programs; the graph does not depend on it. */
  readonly maxPositions: number;
  /**
   * Standard deviation of initial weights, by default 1 / sqrt(hiddenSize): a narrow model that starts with 0.02, which is
   * common for wide models, needs several times as many updates.
   */
  readonly initializerRange: number;
  readonly bosTokenId: number | undefined;
  /** Tokens that end a text. */
  readonly eosTokenIds: readonly number[];
  readonly padTokenId: number | undefined;
}

/** A model's description: these fields are required, and the others have defaults. */
export type ModelSpecInput = Pick<ModelSpec, "vocabSize" | "hiddenSize" | "numLayers" | "numHeads"> &
  Partial<ModelSpec>;

/**
 * Completes a description (by default of a Qwen3 model) and checks it.
 * @throws {@link ModelSpecError} that names the first wrong field.
 */
export function resolveModelSpec(input: ModelSpecInput): ModelSpec {
  const spec: ModelSpec = {
    family: "qwen3",
    head: "language",
    numKeyValueHeads: input.numHeads,
    headDim: Math.floor(input.hiddenSize / input.numHeads),
    intermediateSize: 3 * input.hiddenSize,
    attentionBias: "none",
    hasMlpBias: false,
    hasQkNorm: (input.family ?? "qwen3") === "qwen3",
    ropeTheta: 10_000,
    ropeScaling: { kind: "none" },
    rmsNormEps: 1e-6,
    isTied: input.head !== "value",
    maxPositions: 4096,
    initializerRange: 1 / Math.sqrt(input.hiddenSize),
    bosTokenId: undefined,
    eosTokenIds: [],
    padTokenId: undefined,
    ...input,
  };
  const sizes = [
    "vocabSize",
    "hiddenSize",
    "numLayers",
    "numHeads",
    "numKeyValueHeads",
    "headDim",
    "intermediateSize",
    "maxPositions",
  ] as const;
  for (const field of sizes) {
    if (!Number.isInteger(spec[field]) || spec[field] < 1) {
      throw new ModelSpecError(field, `${field} must be a whole number above 0, but is ${spec[field]}`);
    }
  }
  for (const field of ["ropeTheta", "rmsNormEps", "initializerRange"] as const) {
    if (!(spec[field] > 0))
      throw new ModelSpecError(field, `${field} must be above 0, but is ${spec[field]}`);
  }
  if (spec.headDim % 2 !== 0) {
    const problem = `headDim must be even, because the rotary embedding rotates pairs, but is ${spec.headDim}`;
    throw new ModelSpecError("headDim", problem);
  }
  if (spec.numHeads % spec.numKeyValueHeads !== 0) {
    const problem = `numHeads (${spec.numHeads}) must be a multiple of numKeyValueHeads (${spec.numKeyValueHeads})`;
    throw new ModelSpecError("numKeyValueHeads", problem);
  }
  if (spec.head === "value" && spec.isTied) {
    throw new ModelSpecError("isTied", "isTied must be false for a value head, which is no embedding table");
  }
  for (const id of [spec.bosTokenId, spec.padTokenId, ...spec.eosTokenIds]) {
    if (id !== undefined && !(Number.isInteger(id) && id >= 0 && id < spec.vocabSize)) {
      const rule = `the ids of special tokens must be whole numbers from 0 to below vocabSize (${spec.vocabSize})`;
      throw new ModelSpecError("tokenId", `${rule}, but one is ${id}`);
    }
  }
  return spec;
}
