/**
 * The memory that training takes, predicted before it begins, and the plan that fits.
 *
 * The figures follow what the training graph keeps (training-graph.ts, head-loss.ts) and agree with measured peaks of
 * the 135M shape to a tenth (training-memory.test.ts).
 */
import {
  type LoraSpec,
  listAll,
  listParameters,
  listTrained,
  type ModelSpec,
  type ParameterInfo,
  parameterSize,
} from "@hone/nn";
import { headChunks } from "./head-loss.ts";

/** A thread has a microbatch of its own, or all threads compute each operator of one microbatch together. */
export const ThreadSharing = { microbatches: "microbatches", operators: "operators" } as const;
export type ThreadSharing = (typeof ThreadSharing)[keyof typeof ThreadSharing];

/** From about 32 million values on, operators are large enough for several threads and gradients too large to copy often. */
const LARGE_MODEL_VALUES = 2 ** 25;

/** Whether passes are to be few and large, with all threads on each operator. */
export function isLargeModel(spec: ModelSpec): boolean {
  return countValues(listParameters(spec)) >= LARGE_MODEL_VALUES;
}

/** More pieces compute fewer pairs of tokens, by smaller operators; small models have short rows. */
const LARGE_MODEL_PIECES = 4;

/** Pieces of a row that attention goes through one after the other (packed-attention.ts of the model). */
export function usualRowPieces(spec: ModelSpec): number {
  return isLargeModel(spec) ? LARGE_MODEL_PIECES : 1;
}

/** What training is asked to do at most. */
export interface TrainingExtent {
  readonly threads: number;
  /** Of the longest row. */
  readonly rowTokens: number;
  /** A microbatch is one row at least. */
  readonly microbatchTokens: number;
  /** Adapters that are trained instead of the model; default none. */
  readonly lora?: LoraSpec | undefined;
  /** Whether a reference is held, a second copy of what is trained; default not. */
  readonly hasReference?: boolean;
}

/** How the work is done; the bits of the result are the same. */
export interface WorkDivision {
  readonly sharing: ThreadSharing;
  /** Layers, from the first, that are computed again on the way back instead of being kept. */
  readonly recomputedLayers: number;
}

export interface TrainingPlan extends WorkDivision {
  /**
   * What a training session of a large model takes before its first pass: the predicted activations, in one piece. Memory
   * then does not grow when, late in a run, a batch comes that is larger than those before it.
   */
  readonly reservedBytes: number;
}

/** Bytes at the peak of a training step. */
export interface TrainingMemory {
  /** The process without a model, and what is on its way between it and onnxruntime. */
  readonly base: number;
  readonly weights: number;
  readonly reference: number;
  readonly optimizer: number;
  /** Of the microbatches in work as they are handed out, and their sum. */
  readonly gradients: number;
  /** What onnxruntime holds of the microbatches in work: what the layers keep for the way back, or the gradients after it. */
  readonly activations: number;
  readonly total: number;
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;
const BASE_BYTES = 300 * 2 ** 20;
/** First and second moment. */
const MOMENTS = 2;
/** The copy that onnxruntime hands out, and the sum or the last step's copy until it is collected. */
const GRADIENT_COPIES = 2;
/** Results of a layer of hidden width that the way back reads: both norms' inputs and results, turned queries, what attention mixed. */
const HIDDEN_RESULTS = 6;
/** Gate, its activation, the other branch, and their product. */
const FEED_FORWARD_RESULTS = 4;
/** Log-probabilities, probabilities and a step of their gradient that live at once, of a chunk over the vocabulary. */
const HEAD_RESULTS = 3;
/** What the way back through a layer needs beside what the way there kept, in layers. */
const LAYERS_IN_WORK = 1;
/** onnxruntime's arena keeps more than is in use: blocks are rounded and broken up. With less reserved it grows past it. */
const ARENA_SURPLUS = 1.3;

/** The peak of a training step in which every microbatch is as large as it may be and every token is trained. */
export function predictTrainingMemory(
  spec: ModelSpec,
  { threads, rowTokens, microbatchTokens, lora, hasReference = false }: TrainingExtent,
  { sharing, recomputedLayers }: WorkDivision,
): TrainingMemory {
  const trained = countValues(listTrained({ spec, lora })) * BYTES;
  const microbatches = sharing === ThreadSharing.operators ? 1 : threads;
  const extent = { rowTokens, microbatchTokens };
  // The activations go as the gradients come.
  const inWork = Math.max(activationBytes(spec, extent, recomputedLayers), trained) * ARENA_SURPLUS;
  const parts = {
    base: BASE_BYTES,
    weights: countValues(listAll({ spec, lora })) * BYTES,
    reference: hasReference ? trained : 0,
    optimizer: MOMENTS * trained,
    gradients: (microbatches - 1 + GRADIENT_COPIES) * trained,
    activations: Math.round(microbatches * inWork),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) };
}

/** What a microbatch that is as large as it may be keeps for the way back, with what it needs on the way. */
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
    // The attention weights of a token, of those pairs that are computed (packed-attention.ts of the model).
    spec.numHeads * rowTokens * ((pieces + 1) / (2 * pieces));
  const keptLayers = spec.numLayers - recomputedLayers;
  const bodyValues =
    tokens * (spec.numLayers * spec.hiddenSize + (keptLayers + LAYERS_IN_WORK) * layerValues);
  const headValues =
    HEAD_RESULTS * Math.min(tokens, headChunks(spec.vocabSize, tokens).positions) * spec.vocabSize;
  return Math.ceil(bodyValues + headValues) * BYTES;
}

/**
 * The fastest plan that fits, else the smallest one. Small models: threads that wait for nobody use the processor better.
 * Large ones: threads that share operators hold one set of gradients and activations, and of their layers as few are
 * computed twice as the memory asks.
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

function countValues(parameters: readonly ParameterInfo[]): number {
  return parameters.reduce((sum, parameter) => sum + parameterSize(parameter), 0);
}
