/**
 * Predicts the memory that training needs and chooses a plan that fits.
 *
 * The prediction counts what the training graph keeps (training-graph.ts, head-loss.ts). It agrees with measured peaks of
 * the 135M shape to a tenth (training-memory.test.ts).
 */
import {
  headWidth,
  type LoraSpec,
  listAll,
  listParameters,
  listQuantized,
  listTrained,
  type ModelSpec,
  type ParameterInfo,
  parameterSize,
} from "@hone/nn";
import { headChunks } from "./head-loss.ts";

/** Either each thread has its own microbatch, or all threads together compute each operator of one microbatch. */
export const ThreadSharing = { microbatches: "microbatches", operators: "operators" } as const;
export type ThreadSharing = (typeof ThreadSharing)[keyof typeof ThreadSharing];

/** From about 32 million values, operators are large enough for several threads and gradients too large to copy often. */
const LARGE_MODEL_VALUES = 2 ** 25;

/** Whether a model should have few and large passes, with all threads working on each operator. */
export function isLargeModel(spec: ModelSpec): boolean {
  return countValues(listParameters(spec)) >= LARGE_MODEL_VALUES;
}

/** More pieces mean fewer pairs of tokens but smaller operators. Small models have short rows and need no pieces. */
const LARGE_MODEL_PIECES = 4;

/** Number of pieces of a row that attention processes one after the other (packed-attention.ts of the model). */
export function usualRowPieces(spec: ModelSpec): number {
  return isLargeModel(spec) ? LARGE_MODEL_PIECES : 1;
}

/** The largest extent of the work in training. */
export interface TrainingExtent {
  readonly threads: number;
  /** Tokens of the longest row. */
  readonly rowTokens: number;
  /** Most tokens of a microbatch; a microbatch has at least one row. */
  readonly microbatchTokens: number;
  /** Adapters that are trained instead of the model; default none. */
  readonly lora?: LoraSpec | undefined;
  /** Whether a reference is kept, which is a second copy of the trained parameters; default false. */
  readonly hasReference?: boolean;
  /** Copies of the model's matrices in eight bits that are computed with; default none. */
  readonly quantizedCopies?: number;
  /** False for a model that only scores; default true. */
  readonly isTrained?: boolean;
}

/** How the work is divided. The bits of the result do not depend on it. */
export interface WorkDivision {
  readonly sharing: ThreadSharing;
  /** Number of layers, from the first, that are recomputed in the backward pass instead of being kept. */
  readonly recomputedLayers: number;
}

export interface TrainingPlan extends WorkDivision {
  /**
   * Memory that a training session of a large model reserves before its first pass: the predicted activations, in one block.
   * Memory then does not grow if, late in a run, a batch is larger than all earlier ones.
   */
  readonly reservedBytes: number;
}

/** Bytes at the peak of a training step. */
export interface TrainingMemory {
  /** The process without a model, and the data that is being passed to and from onnxruntime. */
  readonly base: number;
  readonly weights: number;
  readonly reference: number;
  readonly optimizer: number;
  /** The gradients that the running microbatches return, and their sum. */
  readonly gradients: number;
  /** Memory of onnxruntime for the running microbatches: activations for the backward pass, or the gradients that replace them. */
  readonly activations: number;
  readonly total: number;
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;
const BASE_BYTES = 300 * 2 ** 20;
/** The first and the second moment. */
const MOMENTS = 2;
/** The copy that onnxruntime returns, and the sum (or the last step's copy until it is garbage-collected). */
const GRADIENT_COPIES = 2;
/** Tensors of hidden width that the backward pass reads: both norms' inputs and results, rotated queries, attention result. */
const HIDDEN_RESULTS = 6;
/** The gate, its activation, the other branch, and their product. */
const FEED_FORWARD_RESULTS = 4;
/** Tensors of a chunk over the vocabulary that exist at the same time: log-probabilities, probabilities, and a gradient. */
const HEAD_RESULTS = 3;
/** Additional memory of the backward pass through a layer, in units of what a layer keeps. */
const LAYERS_IN_WORK = 1;
/** onnxruntime's arena holds more than is in use, because of rounding and fragmentation. With a smaller reserve, it would grow. */
const ARENA_SURPLUS = 1.3;

/** Predicts the peak of a training step in which every microbatch has the largest size and every token is trained. */
export function predictTrainingMemory(
  spec: ModelSpec,
  {
    threads,
    rowTokens,
    microbatchTokens,
    lora,
    hasReference = false,
    quantizedCopies = 0,
    isTrained = true,
  }: TrainingExtent,
  { sharing, recomputedLayers }: WorkDivision,
): TrainingMemory {
  const trained = isTrained ? countValues(listTrained({ spec, lora })) * BYTES : 0;
  const microbatches = sharing === ThreadSharing.operators ? 1 : threads;
  const extent = { rowTokens, microbatchTokens };
  // The activations are freed while the gradients are computed.
  const inWork = Math.max(activationBytes(spec, extent, recomputedLayers), trained) * ARENA_SURPLUS;
  const parts = {
    base: BASE_BYTES,
    weights: countValues(listAll({ spec, lora })) * BYTES + quantizedCopies * quantizedBytes(spec),
    reference: hasReference ? trained : 0,
    optimizer: MOMENTS * trained,
    gradients: (microbatches - 1 + GRADIENT_COPIES) * trained,
    activations: Math.round(microbatches * inWork),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) };
}

/** Memory that a microbatch of the largest size keeps for the backward pass, and needs during it. */
function activationBytes(
  spec: ModelSpec,
  { rowTokens, microbatchTokens }: Pick<TrainingExtent, "rowTokens" | "microbatchTokens">,
  recomputedLayers: number,
): number {
  const tokens = Math.max(rowTokens, microbatchTokens);
  const pieces = usualRowPieces(spec);
  const layerValues =
    HIDDEN_RESULTS * spec.hiddenSize +
    2 * spec.numKeyValueHeads * spec.headDim +
    (spec.hasQkNorm ? (spec.numHeads + spec.numKeyValueHeads) * spec.headDim : 0) +
    FEED_FORWARD_RESULTS * spec.intermediateSize +
    // The attention weights of a token, for the pairs that are computed (packed-attention.ts of the model).
    spec.numHeads * rowTokens * ((pieces + 1) / (2 * pieces));
  const keptLayers = spec.numLayers - recomputedLayers;
  const bodyValues =
    tokens * (spec.numLayers * spec.hiddenSize + (keptLayers + LAYERS_IN_WORK) * layerValues);
  const headValues =
    HEAD_RESULTS * Math.min(tokens, headChunks(headWidth(spec), tokens).positions) * headWidth(spec);
  return Math.ceil(bodyValues + headValues) * BYTES;
}

/**
 * Chooses the fastest plan that fits, or the one with the least memory if none fits. For small models, threads with their own
 * microbatches use the processor better, because they do not wait for each other. For large models, threads share operators,
 * so that there is one set of gradients and activations, and as few layers are recomputed as the memory limit allows.
 */
export function planTraining(
  spec: ModelSpec,
  extent: TrainingExtent,
  maxBytes: number,
): TrainingPlan & { readonly memory: TrainingMemory } {
  const predict = (work: WorkDivision) => {
    const memory = predictTrainingMemory(spec, extent, work);
    return { ...work, memory, reservedBytes: isLargeModel(spec) ? memory.activations : 0 };
  };
  const apart = predict({ sharing: ThreadSharing.microbatches, recomputedLayers: 0 });
  if (!isLargeModel(spec) && apart.memory.total <= maxBytes) return apart;
  let plan = predict({ sharing: ThreadSharing.operators, recomputedLayers: 0 });
  for (let layers = 1; layers <= spec.numLayers && plan.memory.total > maxBytes; layers++) {
    plan = predict({ sharing: ThreadSharing.operators, recomputedLayers: layers });
  }
  return plan;
}

/** A byte for each value; the scales are few. */
function quantizedBytes(spec: ModelSpec): number {
  return listQuantized(spec).reduce((sum, { out, inner }) => sum + out * inner, 0);
}

function countValues(parameters: readonly ParameterInfo[]): number {
  return parameters.reduce((sum, parameter) => sum + parameterSize(parameter), 0);
}
