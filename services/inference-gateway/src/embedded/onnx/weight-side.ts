/**
 * On which side of its products a large model with slots has its weights: W x^T reads them as they lie, x W^T packed in an order of
 * onnxruntime's. Processors differ by up to a half, either way, so a few layers are run both ways before the first
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
import { type Feed, GraphSession, type SessionOptions } from "@hone/tensor";

/** How a runner's threads work. */
export type RunThreads = Required<Pick<SessionOptions, "intraOpThreads" | "spinUs">>;

/** Milliseconds that some layers take with weights on either side. */
export interface SideTimes {
  readonly left: number;
  readonly right: number;
}

export type MeasureSides = (spec: ModelSpec, weights: Weights, threads: RunThreads) => Promise<SideTimes>;

/** Packing takes time and memory at each load, and a measurement is never exact. */
const MIN_GAIN = 1.05;
/** Weights that are run, so that none is still in a core's cache when it is read again. */
const MEASURED_BYTES = 64 * 2 ** 20;
/** New tokens of a run: a few conversations, and many. */
const MEASURED_TOKENS = [8, 32];
/** Behind one to warm up. */
const ROUNDS = 5;

/** The sides of an engine's models, measured once for each shape. */
export class WeightSides {
  readonly #measure: MeasureSides;
  readonly #known = new Map<string, Promise<SideTimes>>();

  constructor(measure: MeasureSides = measureSides) {
    this.#measure = measure;
  }

  /** Whether this machine is faster with the model's weights on the left, or hardly slower. */
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

/** Milliseconds of each session's best run, all in turn: other work on the machine only makes them slower. */
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
