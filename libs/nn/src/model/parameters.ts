/**
 * The parameters of a model, with the names and layouts of Hugging Face's Llama; matrices are [out, in].
 */
import { deriveSeed, Random } from "@hone/core";
import type { ModelSpec } from "./model-spec.ts";

/** The role of a parameter. It decides the initial values and whether weight decay applies (to matrices only). */
export type ParameterKind = "embedding" | "matrix" | "residual_matrix" | "norm" | "bias";

export interface ParameterInfo {
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: ParameterKind;
}

/** Values by parameter name. */
export type Weights = Readonly<Record<string, Float32Array>>;

export const EMBEDDING = "model.embed_tokens.weight";
export const FINAL_NORM = "model.norm.weight";
export const HEAD = "lm_head.weight";
/** The value head, under the names of `transformers` for a classification of tokens with one label. */
export const VALUE_HEAD = "score.weight";
export const VALUE_BIAS = "score.bias";

/** The matrix that maps hidden states to what the head computes, [{@link headWidth}, C]. */
export function headParameter(spec: ModelSpec): string {
  if (spec.head === "value") return VALUE_HEAD;
  return spec.isTied ? EMBEDDING : HEAD;
}

/** All parameters of the head. */
export function headParameters(spec: ModelSpec): string[] {
  return spec.head === "value" ? [VALUE_HEAD, VALUE_BIAS] : [headParameter(spec)];
}

/** How many numbers the head computes from a hidden state. */
export function headWidth(spec: ModelSpec): number {
  return spec.head === "value" ? 1 : spec.vocabSize;
}

/** Name of a parameter of a layer, such as `layerParameter(0, "self_attn.q_proj")`. */
export function layerParameter(layer: number, part: string): string {
  return `model.layers.${layer}.${part}.weight`;
}

/** The layer that a parameter, or an adapter of one, belongs to; undefined for the embedding, the last norm and the head. */
export function layerOf(name: string): number | undefined {
  const [, layer] = /model\.layers\.(\d+)\./.exec(name) ?? [];
  return layer === undefined ? undefined : Number(layer);
}

/** Name of the bias of a layer's projection. */
export function layerBias(layer: number, part: string): string {
  return `model.layers.${layer}.${part}.bias`;
}

/** Whether a projection of a layer, such as `self_attn.q_proj`, adds a bias. */
export function hasBias(spec: ModelSpec, part: string): boolean {
  if (part.startsWith("mlp.")) return spec.hasMlpBias;
  return spec.attentionBias === "all" || (spec.attentionBias === "inputs" && part !== "self_attn.o_proj");
}

/** All parameters in the order of Hugging Face's state dict. A tied head is the embedding, so it is not listed. */
export function listParameters(spec: ModelSpec): ParameterInfo[] {
  const { hiddenSize, headDim, intermediateSize } = spec;
  const queries = spec.numHeads * headDim;
  const keys = spec.numKeyValueHeads * headDim;
  const parameters: ParameterInfo[] = [
    { name: EMBEDDING, shape: [spec.vocabSize, hiddenSize], kind: "embedding" },
  ];
  for (let layer = 0; layer < spec.numLayers; layer++) {
    const norm = (part: string, size: number) =>
      parameters.push({ name: layerParameter(layer, part), shape: [size], kind: "norm" });
    const project = (part: string, [out, inner]: readonly [number, number], kind: ParameterKind) => {
      parameters.push({ name: layerParameter(layer, part), shape: [out, inner], kind });
      if (hasBias(spec, part)) parameters.push({ name: layerBias(layer, part), shape: [out], kind: "bias" });
    };
    project("self_attn.q_proj", [queries, hiddenSize], "matrix");
    project("self_attn.k_proj", [keys, hiddenSize], "matrix");
    project("self_attn.v_proj", [keys, hiddenSize], "matrix");
    project("self_attn.o_proj", [hiddenSize, queries], "residual_matrix");
    if (spec.hasQkNorm) {
      norm("self_attn.q_norm", headDim);
      norm("self_attn.k_norm", headDim);
    }
    project("mlp.gate_proj", [intermediateSize, hiddenSize], "matrix");
    project("mlp.up_proj", [intermediateSize, hiddenSize], "matrix");
    project("mlp.down_proj", [hiddenSize, intermediateSize], "residual_matrix");
    norm("input_layernorm", hiddenSize);
    norm("post_attention_layernorm", hiddenSize);
  }
  parameters.push({ name: FINAL_NORM, shape: [hiddenSize], kind: "norm" });
  if (spec.head === "value") {
    parameters.push({ name: VALUE_HEAD, shape: [1, hiddenSize], kind: "matrix" });
    parameters.push({ name: VALUE_BIAS, shape: [1], kind: "bias" });
  } else if (!spec.isTied)
    parameters.push({ name: HEAD, shape: [spec.vocabSize, hiddenSize], kind: "matrix" });
  return parameters;
}

/** Number of values of a parameter. */
export function parameterSize(parameter: ParameterInfo): number {
  return parameter.shape.reduce((product, size) => product * size, 1);
}

/**
 * Initial weights: norms are 1, biases 0, and all others normal with standard deviation `initializerRange`. Projections that
 * write into the residual stream are scaled by 1 / sqrt(2 * layers) (GPT-2, section 2.3), so that it does not grow with depth.
 * The random generator of each parameter is seeded with its name, so its values do not depend on the others.
 */
export function initialiseWeights(spec: ModelSpec, seed: number): Record<string, Float32Array> {
  const residualScale = 1 / Math.sqrt(2 * spec.numLayers);
  const weights: Record<string, Float32Array> = {};
  for (const parameter of listParameters(spec)) {
    const values = new Float32Array(parameterSize(parameter));
    if (parameter.kind === "norm") values.fill(1);
    else if (parameter.kind !== "bias") {
      const deviation = spec.initializerRange * (parameter.kind === "residual_matrix" ? residualScale : 1);
      fillNormal(values, deviation, new Random(deriveSeed(seed, "weights", parameter.name)));
    }
    weights[parameter.name] = values;
  }
  return weights;
}

/**
 * Normal values, computed as the sum of twelve uniform values minus six (variance 1). This needs only additions, so the bits
 * are the same on every machine, which logarithms and cosines do not guarantee. The tails end at six standard deviations.
 */
function fillNormal(values: Float32Array, deviation: number, random: Random): void {
  for (let i = 0; i < values.length; i++) {
    let sum = 0;
    for (let draw = 0; draw < 12; draw++) sum += random.nextUint32();
    values[i] = deviation * (sum / 2 ** 32 - 6);
  }
}
