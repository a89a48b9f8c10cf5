/**
 * Runs the decode graph of one policy version on onnxruntime, with the K/V rows in a pool of its own.
 *
 * With pooled contexts the graph reads the pool, and results are equal bit by bit. Large models may read slots instead, copies
 * of what the running sequences need of theirs, so that a step copies nothing but its new rows (slot-contexts.ts).
 *
 * The input arrays are kept between runs, and grow with the largest run.
 */

import {
  buildDecodeGraph,
  CONTEXT_BUCKET,
  type ContextLayout,
  contextInputs,
  contextLayoutFor,
  fedParameters,
  LARGEST_UNIFORM,
  type ModelSpec,
  massBlocks,
  minQueries,
  PAGE_ROWS,
  type ParameterInfo,
  releaseValues,
} from "@hone/nn";
import { type EightBitType, type Fetched, GraphSession, type TensorData } from "@hone/tensor";
import { inverseTemperature, type RowMasses } from "../../domain/sampling/sampling-row.ts";
import { KvPool } from "../cache/kv-pool.ts";
import { contextTokensIn } from "../cache/kv-rows.ts";
import { SlotMemory } from "../cache/row-memory.ts";
import type { PolicyLimits, PolicyRunner, RunCost, RunItem, RunOutput } from "../policy-runner.ts";
import type { ContextSlots } from "./context-slots.ts";
import { FeedBuffers } from "./feed-buffers.ts";
import { largeRunCost } from "./large-run-cost.ts";
import { isLarge, runThreads } from "./run-threads.ts";
import { SlotContexts } from "./slot-contexts.ts";
import { firstTokensOf } from "./token-order.ts";

export interface OnnxRunnerOptions {
  /** Most memory for K/V; only as much as needed is used. */
  readonly maxCacheBytes: number;
  /** Sequences that run at once. Memory beyond what all of them need at full length is not used. */
  readonly maxSequences: number;
  /** Threads that share an operator; 0 = one for small models, every core for large ones. */
  readonly intraOpThreads: number;
  /** How long idle threads busy-wait for the next operator. @default depends on the size of the model */
  readonly spinUs?: number;
  /** Where the graph reads contexts from. @default depends on the size of the model */
  readonly contextLayout?: ContextLayout;
  /** Whether float32 weights are the left side of their products, which only slots allow. @default false */
  readonly isWeightLeft?: boolean;
  /** Whether the weights are quantized (`quantizeWeights`), and how they are stored. @default they are float32 */
  readonly eightBits?: EightBitType | undefined;
  /** Whether the weights belong to the runner, so that it frees their memory at its end. @default false */
  readonly ownsWeights?: boolean;
  /** Cost of its runs. @default with slots it depends on the size of the model; else what the engine assumes */
  readonly runCost?: RunCost;
  /** Where slots, and the pool that they are filled from, have their memory. @default memory that is freed at the end */
  readonly memory?: SlotMemory;
  /** Path prefix of onnxruntime's profile, written when the runner is disposed of. */
  readonly profilePrefix?: string;
}

type PolicyWeights = Readonly<Record<string, TensorData>>;

/** The outputs of the model's probability-mass.ts. */
const MASS_OUTPUTS = ["largest", "blockMasses", "drawnBlocks", "drawnLogits"];

type Contexts = { readonly layout: "pooled"; readonly pool: KvPool } | SlotContexts;

/** Sizes of one run; letters as in the graph: S, N, Q, L/A, W. */
interface RunShape {
  readonly sequences: number;
  readonly tokens: number;
  readonly queries: number;
  readonly contextPages: number;
  readonly wanted: number;
}

export class OnnxRunner implements PolicyRunner {
  readonly limits: PolicyLimits;
  readonly pageCapacity: number;
  readonly runCost?: RunCost;
  readonly #spec: ModelSpec;
  readonly #session: GraphSession;
  readonly #contexts: Contexts;
  readonly #buffers = new FeedBuffers();
  readonly #hasMasses: boolean;
  /** The new keys and values, in one array or in one for each part of a row pool. */
  readonly #rowOutputs: readonly string[];
  /** Freed at the end. */
  readonly #ownWeights: PolicyWeights;
  /** Memory of slots that no other runner uses, which is freed at the end. */
  readonly #ownMemory: SlotMemory | undefined;

  private constructor(
    spec: ModelSpec,
    session: GraphSession,
    contexts: Contexts,
    runCost: RunCost | undefined,
    own: { readonly weights: PolicyWeights; readonly memory: SlotMemory | undefined },
  ) {
    this.#spec = spec;
    this.#hasMasses = massBlocks(spec.vocabSize) > 0;
    this.#session = session;
    this.#contexts = contexts;
    this.#rowOutputs = contexts.layout === "pooled" ? ["newKeyValues"] : contexts.pool.layout.newTensors;
    this.limits = { vocabularySize: spec.vocabSize, maxContextTokens: spec.maxPositions };
    this.pageCapacity = contexts.pool.capacity;
    if (runCost !== undefined) this.runCost = runCost;
    this.#ownWeights = own.weights;
    this.#ownMemory = own.memory;
  }

  /** @param weights the runner reads those that its graph takes as inputs until its end. */
  static async create(
    spec: ModelSpec,
    weights: PolicyWeights,
    options: OnnxRunnerOptions,
  ): Promise<OnnxRunner> {
    const layout = options.contextLayout ?? contextLayoutFor(spec);
    const { eightBits, isWeightLeft = false } = options;
    const session = await GraphSession.create(buildDecodeGraph(spec, { layout, isWeightLeft, eightBits }), {
      ...runThreads(spec, options),
      externalData: weights,
      isRewritten: layout === "pooled" || eightBits === undefined,
      ...(options.profilePrefix !== undefined && { profilePrefix: options.profilePrefix }),
    });
    const stored = layout === "slots" ? eightBits : undefined;
    const affordable = contextTokensIn(spec, options.maxCacheBytes, stored) / PAGE_ROWS;
    const useful = options.maxSequences * Math.ceil(spec.maxPositions / PAGE_ROWS);
    const pages = Math.min(affordable, useful) + 1;
    const memory = options.memory ?? new SlotMemory();
    const contexts =
      layout === "pooled"
        ? { layout, pool: new KvPool(spec, pages) }
        : new SlotContexts(spec, pages, memory, eightBits);
    const usualCost = isLarge(spec)
      ? largeRunCost(spec, layout, eightBits, options.maxCacheBytes)
      : undefined;
    const runCost = options.runCost ?? usualCost;
    const fed = fedParameters(spec, { isWeightLeft, eightBits });
    const ownWeights = options.ownsWeights ? keepRead(weights, fed, eightBits) : {};
    const runner = new OnnxRunner(spec, session, contexts, runCost, {
      weights: ownWeights,
      memory: options.memory === undefined ? memory : undefined,
    });
    for (const { name, shape } of fed) runner.#buffers.give(name, "float32", weights[name]!, shape);
    return runner;
  }

  async run(items: readonly RunItem[]): Promise<RunOutput> {
    const shape = this.#shapeOf(items);
    const contexts = this.#contexts;
    let slots: ContextSlots | undefined;
    let places: number[];
    if (contexts.layout === "slots") {
      ({ slots, places } = contexts.feed(this.#buffers, items));
    } else places = this.#feedPools(items, shape, contexts.pool);
    const firstTokens = firstTokensOf(items, places);
    this.#feedTokens(items, shape, places, firstTokens);
    const isBlockEnough = items.every(({ wantsLogits, isFromAll }) => !wantsLogits || isFromAll);
    const outputs = [...this.#rowOutputs, ...(this.#hasMasses ? MASS_OUTPUTS : [])];
    if (!this.#hasMasses || !isBlockEnough) outputs.push("logits");
    const results = await this.#session.run(this.#buffers.feeds, outputs);
    const write = this.#rowWriter(
      this.#rowOutputs.map((name) => results[name]!.data),
      slots,
    );
    const broken = [...items.keys()].filter(
      (index) => !keepRows(items[index]!, places[index]!, firstTokens[index]!, write),
    );
    return {
      logits: results.logits?.data as Float32Array | undefined,
      masses: this.#hasMasses ? rowMasses(results) : undefined,
      broken,
    };
  }

  /** @param fresh the new keys and values of all tokens */
  #rowWriter(fresh: readonly TensorData[], slots: ContextSlots | undefined): RowWriter {
    const contexts = this.#contexts;
    if (contexts.layout === "pooled") {
      const rows = fresh[0] as Float32Array;
      return (_place, page, position, token, count) =>
        contexts.pool.write(page, position, rows, token, count);
    }
    const words = contexts.pool.layout.newRows(fresh);
    return (place, page, position, token, count) =>
      contexts.pool.write(page, position, words, token, count, slots?.extend(place, position, count));
  }

  copyRows(fromPage: number, toPage: number, count: number): void {
    this.#contexts.pool.copyRows(fromPage, toPage, count);
  }

  /** @throws {TypeError} when the source is of another model. */
  copyPages(source: PolicyRunner, from: Int32Array, to: Int32Array): void {
    const [own, other] = [this.#contexts, source instanceof OnnxRunner ? source.#contexts : undefined];
    for (const [index, page] of from.entries()) {
      if (own.layout === "slots" && other?.layout === "slots")
        own.pool.copyPage(other.pool, page, to[index]!);
      else if (own.layout === "pooled" && other?.layout === "pooled")
        own.pool.copyPage(other.pool, page, to[index]!);
      else throw new TypeError("Pages can only be copied from a runner whose contexts have the same layout");
    }
  }

  async dispose(): Promise<void> {
    await this.#session.release();
    const contexts = this.#contexts;
    if (contexts.layout === "slots") contexts.dispose();
    else contexts.pool.dispose();
    this.#ownMemory?.clear();
    releaseValues(this.#ownWeights);
  }

  #shapeOf(items: readonly RunItem[]): RunShape {
    let tokens = 0;
    let queries = minQueries(this.#spec);
    let longest = 1;
    let wanted = 0;
    for (const { start, count, wantsLogits } of items) {
      tokens += count;
      queries = Math.max(queries, count);
      longest = Math.max(longest, start + count);
      if (wantsLogits) wanted++;
    }
    const contextPages = Math.ceil(longest / CONTEXT_BUCKET) * (CONTEXT_BUCKET / PAGE_ROWS);
    return { sequences: items.length, tokens, queries, contextPages, wanted };
  }

  /** @returns the place of each item among the run's sequences. */
  #feedPools(
    items: readonly RunItem[],
    { sequences, queries, contextPages }: RunShape,
    pool: KvPool,
  ): number[] {
    const pagesOf = this.#buffers.indices("contextPages", [sequences, contextPages]);
    const queryPositions = this.#buffers.indices("queryPositions", [sequences, queries]);
    pagesOf.fill(0);
    for (const [sequence, { pages, start, count }] of items.entries()) {
      pagesOf.set(pages.subarray(0, Math.ceil(start / PAGE_ROWS)), sequence * contextPages);
      const first = sequence * queries;
      for (let i = 0; i < count; i++) queryPositions[first + i] = start + i;
      queryPositions.fill(start + count - 1, first + count, first + queries);
    }
    for (let layer = 0; layer < this.#spec.numLayers; layer++) {
      const names = contextInputs(layer);
      this.#buffers.give(names.keys, "float32", pool.keys[layer]!, pool.shape);
      this.#buffers.give(names.values, "float32", pool.values[layer]!, pool.shape);
    }
    return items.map((_, index) => index);
  }

  #feedTokens(
    items: readonly RunItem[],
    shape: RunShape,
    places: readonly number[],
    firstTokens: readonly number[],
  ): void {
    const { sequences, tokens, queries, wanted } = shape;
    const buffers = this.#buffers;
    const tokenIds = buffers.indices("tokenIds", [1, tokens]);
    const positionIds = buffers.indices("positionIds", [1, tokens]);
    const queryTokens = buffers.indices("queryTokens", [sequences, queries]);
    const tokenQueries = buffers.indices("tokenQueries", [1, tokens]);
    const lastTokens = buffers.indices("lastTokens", [sequences]);
    const wantedSequences = buffers.indices("wantedSequences", [wanted]);
    const perRow = (name: string) => (this.#hasMasses ? buffers.floats(name, [1, wanted, 1]) : undefined);
    const inverseTemperatures = perRow("inverseTemperatures");
    const uniforms = perRow("uniforms");
    let want = 0;
    for (const [index, item] of items.entries()) {
      const { tokenIds: ids, start, count, wantsLogits, temperature = 1, uniform = 0 } = item;
      const firstQuery = places[index]! * queries;
      let token = firstTokens[index]!;
      for (let i = 0; i < count; i++, token++) {
        tokenIds[token] = ids[start + i]!;
        positionIds[token] = start + i;
        tokenQueries[token] = firstQuery + i;
        queryTokens[firstQuery + i] = token;
      }
      queryTokens.fill(token - 1, firstQuery + count, firstQuery + queries);
      lastTokens[places[index]!] = token - 1;
      if (!wantsLogits) continue;
      if (inverseTemperatures) inverseTemperatures[want] = inverseTemperature(temperature);
      if (uniforms) uniforms[want] = Math.min(uniform, LARGEST_UNIFORM);
      wantedSequences[want++] = places[index]!;
    }
  }
}

/** Stores rows of consecutive positions of one page. @returns whether they are finite. */
type RowWriter = (place: number, page: number, position: number, token: number, count: number) => boolean;

/** Stores the new keys and values of an item. @returns false when they are not finite, so that its sequence must fail. */
function keepRows(
  { pages, start, count }: RunItem,
  place: number,
  firstToken: number,
  write: RowWriter,
): boolean {
  for (let position = start; position < start + count; ) {
    const page = pages[Math.floor(position / PAGE_ROWS)]!;
    const rows = Math.min(PAGE_ROWS - (position % PAGE_ROWS), start + count - position);
    if (!write(place, page, position, firstToken + position - start, rows)) return false;
    position += rows;
  }
  return true;
}

/**
 * Frees quantized weights once they are part of the session; those in float32 may share their memory with what is fed.
 * @returns the weights that the runner frees at its end.
 */
function keepRead(
  weights: PolicyWeights,
  fed: readonly ParameterInfo[],
  eightBits: EightBitType | undefined,
): PolicyWeights {
  if (eightBits === undefined) return weights;
  const read = Object.fromEntries(fed.map(({ name }) => [name, weights[name]!]));
  releaseValues(Object.fromEntries(Object.entries(weights).filter(([name]) => read[name] === undefined)));
  return read;
}

function rowMasses(results: Readonly<Record<string, Fetched>>): RowMasses[] {
  const [largest, blockMasses, drawnBlocks, drawnLogits] = MASS_OUTPUTS.map((name) => results[name]!.data);
  const rows = largest!.length;
  const rowOf = (data: Float32Array, row: number) => {
    const size = data.length / rows;
    return data.subarray(row * size, (row + 1) * size);
  };
  return Array.from({ length: rows }, (_, row) => ({
    largest: Number(largest![row]),
    blockMasses: rowOf(blockMasses as Float32Array, row),
    drawn: { block: Number(drawnBlocks![row]), logits: rowOf(drawnLogits as Float32Array, row) },
  }));
}
