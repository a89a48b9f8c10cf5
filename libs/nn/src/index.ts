/**
 * The model: a dense decoder as a graph, with parameters named as Hugging Face names them.
 *
 *   const spec = resolveModelSpec({ vocabSize: 64, hiddenSize: 64, numLayers: 3, numHeads: 4 });
 *   const weights = weightInputs(graph, listParameters(spec));
 *   const hidden = buildTransformer(graph, spec, { tokenIds, positionIds, weights, attend });
 *   const logits = buildHead(spec, hidden, weights);
 */
export { groupedAttention, MASKED_SCORE, toHeadMajor } from "./attention.ts";
export { contextInputs, freshOutputs } from "./cached-attention.ts";
export type { ModelConfig } from "./config-fields.ts";
export { buildDecodeGraph, type ContextLayout, contextLayoutFor, fedParameters } from "./decode-graph.ts";
export { ModelSpecError } from "./errors.ts";
export { configFromSpec, specFromConfig, tensorNameOf } from "./hugging-face-config.ts";
export { buildLayersGraph } from "./layers-graph.ts";
export type { AdaptedModel, LoraInput, LoraSpec, LoraTarget } from "./lora.ts";
export {
  ALL_LINEAR,
  adaptedParameter,
  initialiseAdapters,
  LORA_TARGETS,
  listAdapterParameters,
  listAll,
  listTrained,
  resolveLora,
} from "./lora.ts";
export type { ModelFamily, ModelSpec, ModelSpecInput } from "./model-spec.ts";
export { resolveModelSpec } from "./model-spec.ts";
export { packedAttend } from "./packed-attention.ts";
export type { ParameterInfo, ParameterKind, Weights } from "./parameters.ts";
export {
  EMBEDDING,
  HEAD,
  hasBias,
  headParameter,
  initialiseWeights,
  layerOf,
  listParameters,
  parameterSize,
} from "./parameters.ts";
export { CONTEXT_BUCKET, minQueries, PAGE_ROWS } from "./pooled-attention.ts";
export { LARGEST_UNIFORM, massBlocks } from "./probability-mass.ts";
export { rotaryFactor, rotaryFrequencies } from "./rotary.ts";
export type { Attend, Decoder, TokenInput, TransformerInputs, WeightTensors } from "./transformer.ts";
export { buildHead, buildTransformer, decoderOf, weightInitializers, weightInputs } from "./transformer.ts";
export { allocateShared, releaseValues, shareWeights } from "./weights-memory.ts";
