/**
 * The model: a dense decoder as a graph, with parameters named as Hugging Face names them.
 *
 *   const spec = resolveModelSpec({ vocabSize: 64, hiddenSize: 64, numLayers: 3, numHeads: 4 });
 *   const weights = weightInputs(graph, listParameters(spec));
 *   const hidden = buildTransformer(graph, spec, { tokenIds, positionIds, weights, attend });
 *   const logits = buildHead(spec, hidden, weights);
 */
export { groupedAttention, toHeadMajor } from "./attention/attention.ts";
export { contextInputs } from "./attention/cached-attention.ts";
export { packedAttend } from "./attention/packed-attention.ts";
export { CONTEXT_BUCKET, minQueries, PAGE_ROWS } from "./attention/pooled-attention.ts";
export { rotaryFactor, rotaryFrequencies } from "./attention/rotary.ts";
export {
  KEY_BLOCK,
  newRowsTensor,
  type SlotKind,
  type SlotRow,
  type SlotRowName,
  slotRows,
  slotTensor,
} from "./attention/slot-rows.ts";
export { buildDecodeGraph, type ContextLayout, contextLayoutFor, fedParameters } from "./decode-graph.ts";
export { ModelSpecError } from "./errors.ts";
export { buildLayersGraph } from "./layers-graph.ts";
export type { ModelConfig } from "./model/config-fields.ts";
export { configFromSpec, specFromConfig, tensorNameOf } from "./model/hugging-face-config.ts";
export type { AdaptedModel, LoraInput, LoraSpec, LoraTarget } from "./model/lora.ts";
export {
  ALL_LINEAR,
  adaptedParameter,
  initialiseAdapters,
  LORA_TARGETS,
  listAdapterParameters,
  listAll,
  listTrained,
  resolveLora,
} from "./model/lora.ts";
export type { ModelFamily, ModelHead, ModelSpec, ModelSpecInput } from "./model/model-spec.ts";
export { resolveModelSpec } from "./model/model-spec.ts";
export type { ParameterInfo, ParameterKind, Weights } from "./model/parameters.ts";
export {
  EMBEDDING,
  HEAD,
  hasBias,
  headParameter,
  headParameters,
  headWidth,
  initialiseWeights,
  layerOf,
  listParameters,
  parameterSize,
  VALUE_BIAS,
  VALUE_HEAD,
} from "./model/parameters.ts";
export { allocateShared, releaseValues, shareWeights } from "./model/weights-memory.ts";
export { LARGEST_UNIFORM, massBlocks } from "./probability-mass.ts";
export { quantizedLinear } from "./quantization/quantized-linear.ts";
export {
  allocateQuantized,
  listQuantized,
  listUnquantized,
  type QuantizedMatrices,
  type QuantizedParameter,
  quantizeWeights,
  WeightQuantizer,
} from "./quantization/quantized-weights.ts";
export { type EightBitTraining, listFed, straightThroughLinear } from "./quantization/straight-through.ts";
export type { Attend, Decoder, Linear, TokenInput, TransformerInputs, WeightTensors } from "./transformer.ts";
export {
  buildHead,
  buildTransformer,
  buildValue,
  decoderOf,
  weightInitializers,
  weightInputs,
} from "./transformer.ts";
