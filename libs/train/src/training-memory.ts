/**
 * The memory that training takes, predicted before it begins, and the way to share threads that fits.
 *
 * The figures follow what the training graph keeps (training-graph.ts) and agree with measured peaks of the 135M shape
 * to a tenth (training-memory.test.ts).
 */
import { listParameters, type ModelSpec, parameterSize } from "@hone/nn";

/** A thread has a microbatch of its own, or all threads compute each operator of one microbatch together. */
export const ThreadSharing = { microbatches: "microbatches", operators: "operators" } as const;
export type ThreadSharing = (typeof ThreadSharing)[keyof typeof ThreadSharing];

/** From about 32 million values on, operators are large enough for several threads and gradients too large to copy often. */
const LARGE_MODEL_VALUES = 2 ** 25;

/** Whether passes are to be few and large, with all threads on each operator. */
export function isLargeModel(spec: ModelSpec): boolean {
  return (
    listParameters(spec).reduce((sum, parameter) => sum + parameterSize(parameter), 0) >= LARGE_MODEL_VALUES
  );
}

/** What training is asked to do at most. */
export interface TrainingExtent {
  readonly threads: number;
  /** Of the longest row. */
  readonly rowTokens: number;
  /** A microbatch is one row at least. */
  readonly microbatchTokens: number;
}

/** Bytes at the peak of a training step. */
export interface TrainingMemory {
  /** The process without a model. */
  readonly base: number;
  readonly weights: number;
  readonly optimizer: number;
  /** Of the microbatches in work, and their sum. */
  readonly gradients: number;
  /** What the microbatches in work keep for their way back. */
  readonly activations: number;
  readonly total: number;
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;
const BASE_BYTES = 200 * 2 ** 20;
/** First and second moment. */
const MOMENTS = 2;
/** In onnxruntime, and as the copy that it hands out. */
const GRADIENTS_IN_WORK = 2;
/** What is added up, and with one microbatch the last step's sum until it is collected. */
const GRADIENT_SUMS = 1;
/** Results of a layer of hidden width that the way back reads: norms' inputs and results, attention's, turned queries. */
const HIDDEN_RESULTS = 6;
/** Keys and values, each as projected and as turned to head-major. */
const KEY_VALUE_RESULTS = 2;
/** Gate, its activation, the other branch, and their product. */
const FEED_FORWARD_RESULTS = 4;
/** Logits, log-probabilities and the two steps of their gradient that live at once, over the vocabulary. */
const HEAD_RESULTS = 4;
/** onnxruntime's arena keeps more than is in use: blocks are rounded and broken up. */
const ARENA_SURPLUS = 1.15;

/** The peak of a training step in which every microbatch is as large as it may be and every token is trained. */
export function predictTrainingMemory(
  spec: ModelSpec,
  { threads, rowTokens, microbatchTokens }: TrainingExtent,
  sharing: ThreadSharing,
): TrainingMemory {
  const weights = listParameters(spec).reduce((sum, parameter) => sum + parameterSize(parameter), 0) * BYTES;
  const microbatches = sharing === ThreadSharing.operators ? 1 : threads;
  const tokens = Math.max(rowTokens, microbatchTokens);
  const layerValues =
    HIDDEN_RESULTS * spec.hiddenSize +
    KEY_VALUE_RESULTS * 2 * spec.numKeyValueHeads * spec.headDim +
    FEED_FORWARD_RESULTS * spec.intermediateSize +
    // The attention weights of a token.
    spec.numHeads * rowTokens;
  const values = tokens * (spec.numLayers * layerValues + HEAD_RESULTS * spec.vocabSize);
  const parts = {
    base: BASE_BYTES,
    weights,
    optimizer: MOMENTS * weights,
    gradients: (microbatches * GRADIENTS_IN_WORK + GRADIENT_SUMS) * weights,
    activations: Math.round(microbatches * values * BYTES * ARENA_SURPLUS),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) };
}

/**
 * The faster sharing that fits, else the smaller one: threads that wait for nobody use the processor better, threads
 * that share operators hold one set of gradients and activations. The bits of the result are the same.
 */
export function chooseSharing(
  spec: ModelSpec,
  extent: TrainingExtent,
  maxBytes: number,
): { readonly sharing: ThreadSharing; readonly memory: TrainingMemory } {
  const [faster, smaller] = [ThreadSharing.microbatches, ThreadSharing.operators].map((sharing) => ({
    sharing,
    memory: predictTrainingMemory(spec, extent, sharing),
  })) as [ReturnType<typeof chooseSharing>, ReturnType<typeof chooseSharing>];
  return faster.memory.total <= maxBytes ? faster : smaller;
}
