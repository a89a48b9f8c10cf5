/**
 * The shape of a Qwen3-style decoder, as Hugging Face writes it in `config.json` (`Qwen3ForCausalLM`).
 */
import { ModelSpecError } from "./errors.ts";

/** Sizes and constants of a model; everything that its graph depends on. */
export interface ModelSpec {
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
  /** Base of the rotary angles. */
  readonly ropeTheta: number;
  /** Added to the mean square in every norm. */
  readonly rmsNormEps: number;
  /** Whether the head is the embedding table. */
  readonly isTied: boolean;
  /** Positions that the model is meant for; stored for other programs, the graph does not depend on it. */
  readonly maxPositions: number;
  /**
   * Standard deviation of fresh weights, by default 1 / sqrt(hiddenSize): a narrow model that starts with the 0.02 of
   * wide ones needs several times as many updates.
   */
  readonly initializerRange: number;
  readonly bosTokenId: number | undefined;
  /** Tokens that end a text. */
  readonly eosTokenIds: readonly number[];
  readonly padTokenId: number | undefined;
}

/** What a model's description must state; the rest has defaults. */
export type ModelSpecInput = Pick<ModelSpec, "vocabSize" | "hiddenSize" | "numLayers" | "numHeads"> &
  Partial<ModelSpec>;

const ARCHITECTURE = "Qwen3ForCausalLM";

/** Completes a description and checks it: {@link ModelSpecError} names the first field that is wrong. */
export function resolveModelSpec(input: ModelSpecInput): ModelSpec {
  const spec: ModelSpec = {
    numKeyValueHeads: input.numHeads,
    headDim: Math.floor(input.hiddenSize / input.numHeads),
    intermediateSize: 3 * input.hiddenSize,
    ropeTheta: 10_000,
    rmsNormEps: 1e-6,
    isTied: true,
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
      throw new ModelSpecError(field, "sizes are whole numbers above 0", spec[field]);
    }
  }
  for (const field of ["ropeTheta", "rmsNormEps", "initializerRange"] as const) {
    if (!(spec[field] > 0)) throw new ModelSpecError(field, "constants are above 0", spec[field]);
  }
  if (spec.headDim % 2 !== 0) throw new ModelSpecError("headDim", "rotary pairs need it even", spec.headDim);
  if (spec.numHeads % spec.numKeyValueHeads !== 0) {
    throw new ModelSpecError(
      "numKeyValueHeads",
      `it divides numHeads ${spec.numHeads}`,
      spec.numKeyValueHeads,
    );
  }
  for (const id of [spec.bosTokenId, spec.padTokenId, ...spec.eosTokenIds]) {
    if (id !== undefined && !(Number.isInteger(id) && id >= 0 && id < spec.vocabSize)) {
      throw new ModelSpecError("tokenId", `special tokens lie below vocabSize ${spec.vocabSize}`, id);
    }
  }
  return spec;
}

/** Reads a Hugging Face `config.json`. Options that would change the computation and are not built are refused. */
export function specFromConfig(config: Readonly<Record<string, unknown>>): ModelSpec {
  const architectures = config.architectures;
  if (!Array.isArray(architectures) || architectures[0] !== ARCHITECTURE) {
    throw new ModelSpecError("architectures", `it is ["${ARCHITECTURE}"]`, architectures);
  }
  refuseUnbuilt(config);
  const rope = isRecord(config.rope_parameters) ? config.rope_parameters : config;
  return resolveModelSpec({
    vocabSize: number(config, "vocab_size"),
    hiddenSize: number(config, "hidden_size"),
    numLayers: number(config, "num_hidden_layers"),
    numHeads: number(config, "num_attention_heads"),
    numKeyValueHeads: number(config, "num_key_value_heads"),
    headDim: number(config, "head_dim"),
    intermediateSize: number(config, "intermediate_size"),
    ropeTheta: number(rope, "rope_theta"),
    rmsNormEps: number(config, "rms_norm_eps"),
    isTied: config.tie_word_embeddings === true,
    maxPositions: number(config, "max_position_embeddings"),
    ...(typeof config.initializer_range === "number" ? { initializerRange: config.initializer_range } : {}),
    bosTokenId: tokenIds(config, "bos_token_id")[0],
    eosTokenIds: tokenIds(config, "eos_token_id"),
    padTokenId: tokenIds(config, "pad_token_id")[0],
  });
}

/** The `config.json` of a model, as `transformers` reads it. */
export function configFromSpec(spec: ModelSpec): Record<string, unknown> {
  return {
    architectures: [ARCHITECTURE],
    model_type: "qwen3",
    vocab_size: spec.vocabSize,
    hidden_size: spec.hiddenSize,
    num_hidden_layers: spec.numLayers,
    num_attention_heads: spec.numHeads,
    num_key_value_heads: spec.numKeyValueHeads,
    head_dim: spec.headDim,
    intermediate_size: spec.intermediateSize,
    hidden_act: "silu",
    attention_bias: false,
    attention_dropout: 0,
    rope_theta: spec.ropeTheta,
    rms_norm_eps: spec.rmsNormEps,
    tie_word_embeddings: spec.isTied,
    max_position_embeddings: spec.maxPositions,
    initializer_range: spec.initializerRange,
    use_sliding_window: false,
    bos_token_id: spec.bosTokenId ?? null,
    eos_token_id:
      spec.eosTokenIds.length === 1
        ? spec.eosTokenIds[0]
        : spec.eosTokenIds.length > 1
          ? spec.eosTokenIds
          : null,
    pad_token_id: spec.padTokenId ?? null,
    torch_dtype: "float32",
  };
}

function refuseUnbuilt(config: Readonly<Record<string, unknown>>): void {
  const scaling = config.rope_scaling ?? undefined;
  const ropeType = isRecord(config.rope_parameters) ? config.rope_parameters.rope_type : "default";
  const rules: readonly [string, boolean, string][] = [
    ["hidden_act", (config.hidden_act ?? "silu") === "silu", "the activation is silu"],
    ["attention_bias", (config.attention_bias ?? false) === false, "projections have no bias"],
    ["use_sliding_window", (config.use_sliding_window ?? false) === false, "attention has no window"],
    ["rope_scaling", scaling === undefined, "rotary angles are not scaled"],
    ["rope_parameters", ropeType === undefined || ropeType === "default", "rotary angles are not scaled"],
  ];
  for (const [field, isBuilt, rule] of rules) {
    if (!isBuilt) throw new ModelSpecError(field, rule, config[field]);
  }
}

function number(config: Readonly<Record<string, unknown>>, field: string): number {
  const value = config[field];
  if (typeof value !== "number") throw new ModelSpecError(field, "it is a number", value);
  return value;
}

function tokenIds(config: Readonly<Record<string, unknown>>, field: string): number[] {
  const value = config[field] ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  return ids.map((id) => {
    if (typeof id !== "number") throw new ModelSpecError(field, "token ids are numbers", value);
    return id;
  });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
