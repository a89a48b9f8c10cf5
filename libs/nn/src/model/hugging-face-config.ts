/** Converts between model specifications and Hugging Face's `config.json`. */
import { architectureOf, architectureOfConfig, classNameOf } from "../architectures/table.ts";
import { readRope, writeRope } from "../attention/rotary.ts";
import { ModelSpecError, show } from "../errors.ts";
import { booleanOr, type ModelConfig, numberOr, requireNumber, tokenIds } from "./config-fields.ts";
import { type ModelSpec, resolveModelSpec } from "./model-spec.ts";

const DEFAULT_EPS = 1e-6;
/** What makes a classifier of tokens give one number, without dropout where it is trained further. */
const ONE_LABEL = { id2label: { 0: "LABEL_0" }, label2id: { LABEL_0: 0 }, classifier_dropout: 0 };

/**
 * Reads a configuration.
 * @throws ModelSpecError that names an unsupported option that would change the computation.
 */
export function specFromConfig(config: ModelConfig): ModelSpec {
  const { architecture, head } = architectureOfConfig(config);
  const activation = config.hidden_act ?? "silu";
  if (activation !== "silu") {
    const problem = `hidden_act is ${show(activation)}; Hone supports only the activation "silu"`;
    throw new ModelSpecError("hidden_act", problem);
  }
  if (config.quantization_config !== undefined) {
    const problem = `the weights are quantized (quantization_config ${show(config.quantization_config)})`;
    throw new ModelSpecError("quantization_config", `${problem}; use a model whose weights are not`);
  }
  const rope = readRope(config);
  const numHeads = requireNumber(config, "num_attention_heads");
  const initializerRange = numberOr(config, "initializer_range", undefined);
  return resolveModelSpec({
    family: architecture.family,
    head,
    ...architecture.readTraits(config),
    vocabSize: requireNumber(config, "vocab_size"),
    hiddenSize: requireNumber(config, "hidden_size"),
    numLayers: requireNumber(config, "num_hidden_layers"),
    numHeads,
    numKeyValueHeads: numberOr(config, "num_key_value_heads", numHeads),
    intermediateSize: requireNumber(config, "intermediate_size"),
    ropeTheta: rope.theta,
    ropeScaling: rope.scaling,
    rmsNormEps: numberOr(config, "rms_norm_eps", DEFAULT_EPS),
    isTied: head === "language" && booleanOr(config, "tie_word_embeddings", false),
    maxPositions: requireNumber(config, "max_position_embeddings"),
    ...(initializerRange !== undefined && initializerRange > 0 ? { initializerRange } : {}),
    bosTokenId: tokenIds(config, "bos_token_id")[0],
    eosTokenIds: tokenIds(config, "eos_token_id"),
    padTokenId: tokenIds(config, "pad_token_id")[0],
  });
}

/** The `config.json` of a model in the format of `transformers`. */
export function configFromSpec(spec: ModelSpec): Record<string, unknown> {
  const { family, eosTokenIds } = spec;
  const architecture = architectureOf(family);
  return {
    architectures: [classNameOf(architecture, spec.head)],
    model_type: family,
    vocab_size: spec.vocabSize,
    hidden_size: spec.hiddenSize,
    num_hidden_layers: spec.numLayers,
    num_attention_heads: spec.numHeads,
    num_key_value_heads: spec.numKeyValueHeads,
    intermediate_size: spec.intermediateSize,
    hidden_act: "silu",
    attention_dropout: 0,
    ...architecture.writeTraits(spec),
    ...writeRope({ theta: spec.ropeTheta, scaling: spec.ropeScaling }),
    rms_norm_eps: spec.rmsNormEps,
    tie_word_embeddings: spec.isTied,
    max_position_embeddings: spec.maxPositions,
    initializer_range: spec.initializerRange,
    bos_token_id: spec.bosTokenId ?? null,
    eos_token_id: eosTokenIds.length > 1 ? eosTokenIds : (eosTokenIds[0] ?? null),
    pad_token_id: spec.padTokenId ?? null,
    ...(spec.head === "value" && ONE_LABEL),
    torch_dtype: "float32",
  };
}

/** The name that one of Hone's parameters has in checkpoint files. */
export function tensorNameOf(spec: ModelSpec, parameter: string): string {
  return architectureOf(spec.family).tensorName(parameter);
}
