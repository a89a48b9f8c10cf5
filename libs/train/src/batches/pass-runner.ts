/**
 * Runs one microbatch on the calling thread: computes the loss, scores and gradients of its entries.
 *
 * One session per loss is kept; its sizes are symbolic, so it can run every microbatch. Weights are graph inputs and are read
 * in place.
 */
import {
  type AdaptedModel,
  type EightBitTraining,
  EMBEDDING,
  headWidth,
  listAll,
  listFed,
  listTrained,
  type QuantizedMatrices,
  type QuantizedParameter,
  type Weights,
} from "@hone/nn";
import { type Feed, type Fetched, type Graph, GraphSession, type SessionOptions } from "@hone/tensor";
import { MicrobatchError } from "../errors.ts";
import { type HeadChunks, headChunks } from "../graph/head-loss.ts";
import { buildForwardGraph, buildTrainingGraph } from "../graph/training-graph.ts";
import { gradientOutput, INPUT, OUTPUT } from "../graph/training-names.ts";
import { chunkFeeds, entryEnds, type Microbatch, microbatchFeeds, positionEnds } from "./microbatch.ts";
import type { Pass, PassObjective, PassScores } from "./plan-passes.ts";

export interface PassResult extends PassScores {
  /** 0 if nothing was differentiated. */
  readonly loss: number;
  /** Gradients by the names of the trained parameters; empty if nothing was differentiated. */
  readonly gradients: Record<string, Float32Array>;
}

/** The weights of a pass; with eight bits also what was quantized of them. */
export interface PassWeights {
  readonly weights: Weights;
  readonly quantized: QuantizedMatrices | undefined;
}

export interface PassRunnerOptions {
  readonly session: SessionOptions;
  /** Intended maximum of a microbatch's tokens. */
  readonly maxTokens: number;
  /** Number of logit values that the head computes at a time. */
  readonly headChunkValues: number | undefined;
  /** Number of pieces of a row that attention processes one after the other; rows have at least this many tokens. */
  readonly rowPieces: number;
  /** Number of layers that are recomputed in the backward pass. */
  readonly recomputedLayers: number;
  /** Computes products in eight bits. @default float32 */
  readonly eightBits?: EightBitTraining | undefined;
  /** Memory that a training session reserves before its first pass. */
  readonly reservedBytes: number;
}

export class PassRunner {
  readonly #model: AdaptedModel;
  readonly #options: PassRunnerOptions;
  readonly #sessions = new Map<string, Promise<GraphSession>>();
  /** Key of the session that holds the reserved memory. */
  #reserved: string | undefined;
  #isClosed = false;

  constructor(model: AdaptedModel, options: PassRunnerOptions) {
    this.#model = model;
    this.#options = options;
  }

  async run(
    { weights, quantized }: PassWeights,
    { batch, temperature, objective, hasSquares }: Pass,
  ): Promise<PassResult> {
    const { spec } = this.#model;
    // Enough chunks for the largest microbatch, so that one session serves all. A row may be longer than the intended maximum.
    const { maxTokens, headChunkValues, rowPieces, recomputedLayers, eightBits } = this.#options;
    const chunks = headChunks(headWidth(spec), Math.max(maxTokens, batch.positions.length), headChunkValues);
    const feeds = microbatchFeeds(batch, weights[EMBEDDING]!, spec, { chunks, rowPieces });
    for (const { name, shape } of listAll(this.#model)) {
      feeds[name] = { dtype: "float32", data: weights[name]!, shape };
    }
    if (quantized !== undefined) Object.assign(feeds, quantizedFeeds(listFed(spec, eightBits!), quantized));
    if (objective === undefined) {
      const session = await this.#session(`forward ${temperature} ${hasSquares} ${chunks.count}`, () =>
        buildForwardGraph(this.#model, { temperature, hasSquares }, { chunks, rowPieces, eightBits }),
      );
      return { ...scoresOf(await session.run(feeds)), loss: 0, gradients: {} };
    }
    Object.assign(feeds, objectiveFeeds(batch, objective, chunks));
    const hasEntropyBonus = objective.entropyWeight !== undefined;
    const graphObjective = { terms: objective.terms, temperature, hasEntropyBonus };
    const key = JSON.stringify([graphObjective, chunks]);
    const reserved = BigInt(await this.#reserve(key));
    feeds[INPUT.reserved] = { dtype: "int64", data: BigInt64Array.of(reserved), shape: [1] };
    const session = await this.#session(key, () =>
      buildTrainingGraph(this.#model, graphObjective, { chunks, rowPieces, recomputedLayers, eightBits }),
    );
    const results = await session.run(feeds);
    return {
      ...scoresOf(results),
      loss: floats(results[OUTPUT.loss])[0]!,
      gradients: this.#gradientsOf(batch, results),
    };
  }

  /** Frees the sessions. A pass that has none yet fails, and so do later ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    // The pass that wanted a session which cannot be built has reported it.
    for (const session of sessions) await (await session.catch(() => undefined))?.release();
  }

  #session(key: string, build: () => Graph): Promise<GraphSession> {
    if (this.#isClosed) return Promise.reject(new MicrobatchError("its sessions are closed"));
    let session = this.#sessions.get(key);
    if (session === undefined) {
      session = GraphSession.create(build(), this.#options.session);
      this.#sessions.set(key, session);
    }
    return session;
  }

  /**
   * Only one training session holds reserved memory. If the objective changes, the session of the previous one is released.
   * @returns the number of float32 values to reserve
   */
  async #reserve(key: string): Promise<number> {
    const { reservedBytes } = this.#options;
    const before = this.#reserved;
    if (reservedBytes === 0 || before === key) return 0;
    this.#reserved = key;
    const session = before === undefined ? undefined : this.#sessions.get(before);
    if (before !== undefined) this.#sessions.delete(before);
    await (await session)?.release();
    return Math.ceil(reservedBytes / Float32Array.BYTES_PER_ELEMENT);
  }

  #gradientsOf(batch: Microbatch, results: Readonly<Record<string, Fetched>>): Record<string, Float32Array> {
    const gradients: Record<string, Float32Array> = {};
    for (const { name, shape } of listTrained(this.#model)) {
      const found = results[gradientOutput(name)];
      gradients[name] = found === undefined ? new Float32Array(shape[0]! * shape[1]!) : floats(found);
    }
    const table = gradients[EMBEDDING];
    if (table !== undefined) addLookupGradient(table, batch, floats(results[gradientOutput(INPUT.embedded)]));
    return gradients;
  }
}

function quantizedFeeds(
  parameters: readonly QuantizedParameter[],
  quantized: QuantizedMatrices,
): Record<string, Feed> {
  const feeds: Record<string, Feed> = {};
  const feedMatrix = (name: string, shape: readonly number[]) => {
    const data = quantized[name]!;
    feeds[name] = { dtype: data instanceof Int8Array ? "int8" : "uint8", data, shape };
  };
  for (const { values, scales, channels, inner, out } of parameters) {
    feedMatrix(values, [inner, out]);
    if (channels !== undefined) feedMatrix(channels, [out, inner]);
    feeds[scales] = { dtype: "float32", data: quantized[scales]!, shape: [out] };
  }
  return feeds;
}

function objectiveFeeds(
  batch: Microbatch,
  objective: PassObjective,
  chunks: HeadChunks,
): Record<string, Feed> {
  const { inputs, weight, entropyWeight } = objective;
  const perEntry = (name: string, values: Float32Array) =>
    chunkFeeds(name, "float32", values, entryEnds(batch, chunks));
  return {
    ...Object.assign({}, ...Object.entries(inputs).map(([name, values]) => perEntry(name, values))),
    ...perEntry(INPUT.weight, weight),
    ...(entropyWeight === undefined
      ? {}
      : chunkFeeds(INPUT.entropyWeight, "float32", entropyWeight, positionEnds(batch, chunks))),
  };
}

/** Adds each token's gradient to its row of the table, in the order of the tokens. */
function addLookupGradient(table: Float32Array, batch: Microbatch, gradient: Float32Array): void {
  const width = gradient.length / batch.tokenIds.length;
  for (let at = 0; at < batch.tokenIds.length; at++) {
    const row = batch.tokenIds[at]! * width;
    const from = at * width;
    for (let i = 0; i < width; i++) table[row + i]! += gradient[from + i]!;
  }
}

function scoresOf(results: Readonly<Record<string, Fetched>>): PassScores {
  const ofPositions = (name: string) =>
    results[name] === undefined ? new Float32Array(0) : floats(results[name]);
  return {
    score: floats(results[OUTPUT.score]),
    entropy: ofPositions(OUTPUT.entropy),
    squares: ofPositions(OUTPUT.squares),
  };
}

function floats(value: Fetched | undefined): Float32Array {
  return value!.data as Float32Array;
}
