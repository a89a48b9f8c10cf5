/**
 * Runs the decode graph of one policy version on onnxruntime, with the K/V rows in a pool of its own.
 *
 * The arrays that a run is fed with are kept and grow with the largest run.
 */

import {
  buildDecodeGraph,
  CONTEXT_BUCKET,
  type ModelSpec,
  minQueries,
  PAGE_ROWS,
  poolInputs,
  type Weights,
} from "@hone/nn";
import { type Feed, GraphSession } from "@hone/tensor";
import { contextTokensIn, KvPool } from "./kv-pool.ts";
import type { PolicyLimits, PolicyRunner, RunItem, RunOutput } from "./policy-runner.ts";

export interface OnnxRunnerOptions {
  /** Memory for K/V, used as far as needed. */
  readonly maxCacheBytes: number;
  /** Sequences that run at once: more memory than all of them take at their longest is left alone. */
  readonly maxSequences: number;
  /** Threads that share an operator. */
  readonly intraOpThreads: number;
  /** Whether idle threads busy-wait. */
  readonly isSpinning: boolean;
}

/** Sizes of one run; letters as in the graph: S, N, Q, L/A, W. */
interface RunShape {
  readonly sequences: number;
  readonly tokens: number;
  readonly queries: number;
  readonly contextPages: number;
  readonly wanted: number;
}

/** One thread's share of rows must not shrink to a single one, which another kernel computes: see D3 of the graph. */
const MAX_INTRA_OP_THREADS = 8;

export class OnnxRunner implements PolicyRunner {
  readonly limits: PolicyLimits;
  readonly pageCapacity: number;
  readonly #spec: ModelSpec;
  readonly #session: GraphSession;
  readonly #pool: KvPool;
  readonly #buffers = new IndexBuffers();

  private constructor(spec: ModelSpec, session: GraphSession, pool: KvPool) {
    this.#spec = spec;
    this.#session = session;
    this.#pool = pool;
    this.limits = { vocabularySize: spec.vocabSize, maxContextTokens: spec.maxPositions };
    this.pageCapacity = pool.capacity;
  }

  static async create(spec: ModelSpec, weights: Weights, options: OnnxRunnerOptions): Promise<OnnxRunner> {
    const session = await GraphSession.create(buildDecodeGraph(spec), {
      intraOpThreads: Math.min(options.intraOpThreads, MAX_INTRA_OP_THREADS),
      isSpinning: options.isSpinning,
      externalData: weights,
    });
    const affordable = contextTokensIn(spec, options.maxCacheBytes) / PAGE_ROWS;
    const useful = options.maxSequences * Math.ceil(spec.maxPositions / PAGE_ROWS);
    return new OnnxRunner(spec, session, new KvPool(spec, Math.min(affordable, useful) + 1));
  }

  async run(items: readonly RunItem[]): Promise<RunOutput> {
    const shape = this.#shapeOf(items);
    const feeds = this.#fill(items, shape);
    for (let layer = 0; layer < this.#spec.numLayers; layer++) {
      const names = poolInputs(layer);
      const poolShape = this.#pool.shape;
      feeds[names.keys] = { dtype: "float32", data: this.#pool.keys[layer]!, shape: poolShape };
      feeds[names.values] = { dtype: "float32", data: this.#pool.values[layer]!, shape: poolShape };
    }
    const { logits, newKeyValues } = await this.#session.run(feeds);
    const fresh = newKeyValues!.data as Float32Array;
    const broken = new Set<number>();
    let token = 0;
    for (const [index, { pages, start, count }] of items.entries()) {
      for (let i = start; i < start + count; i++) {
        const page = pages[Math.floor(i / PAGE_ROWS)]!;
        if (!this.#pool.write(page, i, fresh, token++)) broken.add(index);
      }
    }
    return { logits: logits!.data as Float32Array, broken: [...broken] };
  }

  copyRows(fromPage: number, toPage: number, count: number): void {
    this.#pool.copyRows(fromPage, toPage, count);
  }

  async dispose(): Promise<void> {
    await this.#session.release();
    this.#pool.dispose();
  }

  #shapeOf(items: readonly RunItem[]): RunShape {
    let tokens = 0;
    let queries = minQueries(this.#spec);
    let longest = 1;
    let wanted = 0;
    let lastPage = 0;
    for (const { pages, start, count, wantsLogits } of items) {
      tokens += count;
      queries = Math.max(queries, count);
      longest = Math.max(longest, start + count);
      if (wantsLogits) wanted++;
      const used = Math.ceil((start + count) / PAGE_ROWS);
      for (let i = Math.floor(start / PAGE_ROWS); i < used; i++) lastPage = Math.max(lastPage, pages[i]!);
    }
    this.#pool.reserve(lastPage + 1);
    const contextPages = Math.ceil(longest / CONTEXT_BUCKET) * (CONTEXT_BUCKET / PAGE_ROWS);
    return { sequences: items.length, tokens, queries, contextPages, wanted };
  }

  #fill(items: readonly RunItem[], shape: RunShape): Record<string, Feed> {
    const { sequences, tokens, queries, contextPages, wanted } = shape;
    const buffers = this.#buffers;
    const tokenIds = buffers.view("tokenIds", [1, tokens]);
    const positionIds = buffers.view("positionIds", [1, tokens]);
    const pagesOf = buffers.view("contextPages", [sequences, contextPages]);
    const queryTokens = buffers.view("queryTokens", [sequences, queries]);
    const queryPositions = buffers.view("queryPositions", [sequences, queries]);
    const tokenQueries = buffers.view("tokenQueries", [1, tokens]);
    const wantedTokens = buffers.view("wantedTokens", [wanted]);
    pagesOf.fill(0);
    let token = 0;
    let want = 0;
    for (let sequence = 0; sequence < sequences; sequence++) {
      const { tokens: ids, pages, start, count, wantsLogits } = items[sequence]!;
      pagesOf.set(pages.subarray(0, Math.ceil(start / PAGE_ROWS)), sequence * contextPages);
      const firstQuery = sequence * queries;
      for (let i = 0; i < count; i++, token++) {
        tokenIds[token] = ids[start + i]!;
        positionIds[token] = start + i;
        tokenQueries[token] = firstQuery + i;
        queryTokens[firstQuery + i] = token;
        queryPositions[firstQuery + i] = start + i;
      }
      queryTokens.fill(token - 1, firstQuery + count, firstQuery + queries);
      queryPositions.fill(start + count - 1, firstQuery + count, firstQuery + queries);
      if (wantsLogits) wantedTokens[want++] = token - 1;
    }
    return buffers.feeds;
  }
}

/** Index inputs by name: memory that is kept, viewed in the size of each run. */
class IndexBuffers {
  readonly feeds: Record<string, Feed> = {};
  readonly #memory = new Map<string, Int32Array>();

  view(name: string, shape: readonly number[]): Int32Array {
    const count = shape.reduce((product, size) => product * size, 1);
    let memory = this.#memory.get(name);
    if (memory === undefined || memory.length < count) {
      memory = new Int32Array(2 ** Math.ceil(Math.log2(Math.max(count, 16))));
      this.#memory.set(name, memory);
    }
    const data = memory.subarray(0, count);
    this.feeds[name] = { dtype: "int32", data, shape };
    return data;
  }
}
