/**
 * One generation inside the engine: its tokens, the pages of their K/V, and its metrics so far.
 *
 * Q1: `tokens[0, length)` are known, and the K/V of the first `computed` of them is in `pages`. `computed < length` while
 *     it runs; the others are the next prefill chunk, or the one token of a decode step.
 * Q2: pages before `#ownFrom` are those of the lease; the `#ownCount` from there on are held by the sequence. Where the
 *     lease ends inside a page, the first own page has a copy of the lease's rows of that page.
 */

import { PAGE_ROWS } from "@hone/nn";
import { type FinishReason, OnNewVersion, type VersionSpan } from "@hone/rl";
import type {
  EngineGeneration,
  GenerateRequest,
  TokenChunk,
  TokenLogprob,
} from "../domain/inference-engine.ts";
import { uniformAt } from "../domain/sampling/counter-random.ts";
import { isFromAll } from "../domain/sampling/sampler.ts";
import type { PagePool } from "./cache/page-pool.ts";
import type { Lease, PrefixCache } from "./cache/prefix-cache.ts";
import type { PolicyRunner, RunItem } from "./policy-runner.ts";

/** A sampled token. */
export interface DrawnToken extends TokenLogprob {
  /** The most likely tokens, if the request asks for them. */
  readonly top: readonly TokenLogprob[];
}

/** The weights on which a sequence runs, with what holds its keys and values. */
export interface SequenceHome {
  readonly runner: PolicyRunner;
  readonly pool: PagePool;
  readonly cache: PrefixCache;
}

export class Sequence {
  readonly request: GenerateRequest;
  /** Whether the caller wants tokens as they are made. */
  readonly isStreaming: boolean;
  readonly tokenIds: Int32Array;
  /** One table from a start to the next: whoever keeps something for a sequence that runs knows it by its table. */
  pages: Int32Array;
  readonly deadlineAt: number;
  readonly logprobs: number[] = [];
  /** The most likely tokens at each sampled one, if the request asks for them. */
  readonly topLogprobs: (readonly TokenLogprob[])[] = [];
  length: number;
  computed = 0;
  lease: Lease | undefined;
  isAborted = false;
  readonly #spans: { version: number; tokenCount: number }[] = [];
  readonly #submittedAt: number;
  #startedAt: number | undefined;
  #firstTokenAt: number | undefined;
  #cachedTokens: number | undefined;
  #ownFrom = 0;
  #ownCount = 0;
  /** Number of tokens that the next run computes, for which there are pages. */
  #next = 0;
  /** Whether an older version computed some of its keys and values, so that no other sequence may use them. */
  #hasOldRows = false;
  /** Number of tokens that a streaming caller has got. */
  #told = 0;

  /** @param maxContextTokens the model's; new tokens beyond it are cut off. */
  constructor(request: GenerateRequest, isStreaming: boolean, maxContextTokens: number, submittedAt: number) {
    this.request = request;
    this.isStreaming = isStreaming;
    const prompt = request.promptIds;
    const capacity = Math.min(prompt.length + request.sampling.maxNewTokens, maxContextTokens);
    this.tokenIds = new Int32Array(capacity);
    this.tokenIds.set(prompt);
    this.pages = new Int32Array(Math.ceil(capacity / PAGE_ROWS));
    this.length = prompt.length;
    this.#submittedAt = submittedAt;
    this.deadlineAt = submittedAt + request.deadlineMs;
  }

  /** Number of tokens whose K/V is not computed yet; at least one (Q1). */
  get pending(): number {
    return this.length - this.computed;
  }

  get isPrefilling(): boolean {
    return this.computed < this.request.promptIds.length || this.pending > 1;
  }

  get promptLength(): number {
    return this.request.promptIds.length;
  }

  get sampled(): number {
    return this.length - this.request.promptIds.length;
  }

  /** Version of the first sampled token; undefined before it. */
  get firstVersion(): number | undefined {
    return this.#spans[0]?.version;
  }

  /** Takes its prefix from the cache. The last token is always computed, as its logits are needed. */
  start(cache: PrefixCache, now: number): void {
    this.lease = cache.match(this.tokenIds, this.length - 1, this.pages);
    this.computed = this.lease.length;
    this.#ownFrom = Math.floor(this.lease.length / PAGE_ROWS);
    this.#startedAt ??= now;
  }

  /** Takes a longer prefix that has come into the cache since, if it has no pages of its own yet. */
  catchUp(cache: PrefixCache, now: number): void {
    if (this.lease === undefined || this.pending === 1 || this.#ownCount > 0) return;
    const before = this.lease;
    this.start(cache, now);
    cache.release(before);
  }

  /** Takes pages for its next `count` tokens. @returns false, and takes none, when there are too few. */
  takePages(pool: PagePool, count: number, runner: PolicyRunner): boolean {
    const owned = this.#ownFrom + this.#ownCount;
    const missing = Math.ceil((this.computed + count) / PAGE_ROWS) - owned;
    const shared = this.pages[owned] ?? 0;
    if (missing > 0 && !pool.take(missing, this.pages, owned)) return false;
    const begun = this.computed % PAGE_ROWS;
    if (this.#ownCount === 0 && begun > 0) runner.copyRows(shared, this.pages[owned]!, begun); // Q2
    this.#ownCount += Math.max(0, missing);
    this.#next = count;
    return true;
  }

  /** The tokens that the next run computes for it. */
  item(): RunItem {
    const { sampling } = this.request;
    return {
      tokenIds: this.tokenIds,
      pages: this.pages,
      start: this.computed,
      count: this.#next,
      wantsLogits: this.#next === this.pending,
      temperature: sampling.temperature,
      uniform: this.uniform,
      isFromAll: isFromAll(sampling),
    };
  }

  /** The random number for its next token. */
  get uniform(): number {
    return uniformAt(this.request.seed, this.length);
  }

  /** Counts computed tokens. A prefill goes into the cache at once, so that its group finds it in the next step. */
  advance(cache: PrefixCache): void {
    const wasPrefilling = this.isPrefilling;
    this.#cachedTokens ??= this.computed;
    this.computed += this.#next;
    this.#next = 0;
    if (wasPrefilling && !this.#hasOldRows && this.lease !== undefined) {
      this.lease = cache.extend(this.lease, this.tokenIds, this.computed, this.pages);
    }
  }

  append({ tokenId, logprob, top }: DrawnToken, version: number, now: number): void {
    this.tokenIds[this.length++] = tokenId;
    this.logprobs.push(logprob);
    if (this.#wantsTop) this.topLogprobs.push(top);
    const last = this.#spans.at(-1);
    if (last?.version === version) last.tokenCount++;
    else this.#spans.push({ version, tokenCount: 1 });
    this.#firstTokenAt ??= now;
  }

  /** The tokens that were sampled since the last call. */
  takeChunk(): TokenChunk {
    const from = this.#told;
    this.#told = this.sampled;
    return {
      tokenIds: Array.from(this.tokenIds.subarray(this.promptLength + from, this.length)),
      logprobs: this.logprobs.slice(from),
      ...(this.#wantsTop && { topLogprobs: this.topLogprobs.slice(from) }),
    };
  }

  /** Gives its K/V to the cache, for its session's next turn and its group. */
  release(cache: PrefixCache, pool: PagePool): void {
    if (this.lease === undefined) return;
    if (!this.#hasOldRows) this.lease = cache.extend(this.lease, this.tokenIds, this.computed, this.pages);
    this.discard(cache, pool);
  }

  /** Frees its pages without caching them. If it is started again, it gives the same tokens, bit by bit. */
  discard(cache: PrefixCache, pool: PagePool): void {
    if (this.lease === undefined) return;
    for (let i = 0; i < this.#ownCount; i++) pool.release(this.pages[this.#ownFrom + i]!);
    cache.release(this.lease);
    this.lease = undefined;
    this.pages = new Int32Array(this.pages.length);
    this.computed = 0;
    this.#ownFrom = 0;
    this.#ownCount = 0;
    this.#next = 0;
    this.#hasOldRows = false;
  }

  /**
   * Takes copies of its keys and values along to a newer version, if its request says that they are kept.
   * @returns false, and nothing has changed, when they are not, when it has sampled nothing yet, or when there are too few pages.
   */
  takeRows(next: SequenceHome, old: SequenceHome): boolean {
    if (this.request.onNewVersion !== OnNewVersion.keep) return false;
    const { computed } = this;
    const count = Math.ceil(computed / PAGE_ROWS);
    const pages = new Int32Array(count);
    if (this.lease === undefined || this.sampled === 0 || !next.pool.take(count, pages, 0)) return false;
    next.runner.copyPages(old.runner, this.pages.subarray(0, count), pages);
    this.discard(old.cache, old.pool);
    this.pages.set(pages);
    this.lease = next.cache.match(this.tokenIds, 0, this.pages);
    this.computed = computed;
    this.#ownCount = count;
    this.#hasOldRows = true;
    return true;
  }

  result(finishReason: FinishReason, now: number): EngineGeneration {
    const startedAt = this.#startedAt ?? now;
    const firstTokenAt = this.#firstTokenAt ?? now;
    return {
      tokenIds: Array.from(this.tokenIds.subarray(this.request.promptIds.length, this.length)),
      logprobs: this.logprobs,
      ...(this.#wantsTop && { topLogprobs: this.topLogprobs }),
      finishReason,
      versions: this.#spans satisfies VersionSpan[],
      metrics: {
        prefillTokens:
          this.#cachedTokens === undefined ? 0 : this.request.promptIds.length - this.#cachedTokens,
        cachedTokens: this.#cachedTokens ?? 0,
        queueMs: startedAt - this.#submittedAt,
        prefillMs: firstTokenAt - startedAt,
        decodeMs: now - firstTokenAt,
      },
    };
  }

  get #wantsTop(): boolean {
    return (this.request.sampling.topLogprobs ?? 0) > 0;
  }
}
