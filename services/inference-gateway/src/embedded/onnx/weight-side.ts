/**
 * Chooses the side of the weights in the products of a large model with slots: W x^T reads them as they are, x W^T packed in an order of
 * onnxruntime. Either can be faster by up to a half, depending on the processor, so a few layers are run both ways before the first
 * version of a shape is loaded. The samples are the same up to rounding.
 */
import {
  buildLayersGraph,
  layerOf,
  listParameters,
  type ModelSpec,
  parameterSize,
  type Weights,
} from "@hone/nn";
import { type Feed, GraphSession } from "@hone/tensor";
import type { RunThreads } from "./run-threads.ts";

/** Milliseconds that some layers take with their weights on each side. */
export interface SideTimes {
  readonly left: number;
  readonly right: number;
}

export type MeasureSides = (spec: ModelSpec, weights: Weights, threads: RunThreads) => Promise<SideTimes>;

/** Packing must be faster by this factor, as it takes time and memory at each load and measurements are not exact. */
const MIN_GAIN = 1.05;
/** Bytes of weights that are run, so many that none is still in a core's cache when it is read again. */
const MEASURED_BYTES = 64 * 2 ** 20;
/** New tokens of the measured runs, as with a few and with many conversations. */
const MEASURED_TOKENS = [8, 32];
/** Measured runs, after one that is not measured. */
const ROUNDS = 5;

/** Chooses the side for an engine's models, and measures each shape once. */
export class WeightSides {
  readonly #measure: MeasureSides;
  readonly #known = new Map<string, Promise<SideTimes>>();

  constructor(measure: MeasureSides = measureSides) {
    this.#measure = measure;
  }

  /** Whether this machine is faster, or hardly slower, with the model's weights on the left. */
  async isLeft(spec: ModelSpec, weights: Weights, threads: RunThreads): Promise<boolean> {
    const { hiddenSize, intermediateSize, numHeads, headDim } = spec;
    const shape = [hiddenSize, intermediateSize, numHeads, headDim].join();
    const measured = this.#known.get(shape) ?? this.#measure(spec, weights, threads);
    this.#known.set(shape, measured);
    try {
      const { left, right } = await measured;
      return left <= right * MIN_GAIN;
    } catch (error) {
      this.#known.delete(shape);
      throw error;
    }
  }
}

/** Runs some layers both ways. */
export async function measureSides(
  spec: ModelSpec,
  weights: Weights,
  threads: RunThreads,
): Promise<SideTimes> {
  const few = { ...spec, numLayers: measuredLayers(spec) };
  const sessions: GraphSession[] = [];
  try {
    for (const isWeightLeft of [true, false]) {
      const graph = buildLayersGraph(few, isWeightLeft);
      sessions.push(await GraphSession.create(graph, { ...threads, externalData: weights }));
    }
    let [left, right] = [0, 0];
    for (const tokens of MEASURED_TOKENS) {
      const [leftMs, rightMs] = await bestOf(sessions, feedsOf(few, tokens));
      left += leftMs!;
      right += rightMs!;
    }
    return { left, right };
  } finally {
    for (const session of sessions) await session.release();
  }
}

/** Milliseconds of each session's fastest run. The sessions take turns, as other work on the machine can only slow runs down. */
async function bestOf(sessions: readonly GraphSession[], feeds: Record<string, Feed>): Promise<number[]> {
  const best = sessions.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [at, session] of sessions.entries()) {
      const startedAt = performance.now();
      await session.run(feeds);
      if (round > 0) best[at] = Math.min(best[at]!, performance.now() - startedAt);
    }
  }
  return best;
}

function measuredLayers(spec: ModelSpec): number {
  const values = listParameters(spec)
    .filter(({ name }) => layerOf(name) === 0)
    .reduce((sum, parameter) => sum + parameterSize(parameter), 0);
  const layers = Math.ceil(MEASURED_BYTES / (values * Float32Array.BYTES_PER_ELEMENT));
  return Math.min(layers, spec.numLayers);
}

function feedsOf({ hiddenSize }: ModelSpec, tokens: number): Record<string, Feed> {
  return {
    hidden: {
      dtype: "float32",
      data: new Float32Array(tokens * hiddenSize).fill(1),
      shape: [1, tokens, hiddenSize],
    },
    positionIds: { dtype: "int32", data: new Int32Array(tokens), shape: [1, tokens] },
  };
}
