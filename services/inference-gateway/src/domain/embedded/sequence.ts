/**
 * One generation inside the engine: its tokens, where their K/V lies, and what it has cost so far.
 *
 * Q1: `tokens[0, length)` are known, `rows[0, computed)` hold their K/V, and `computed < length` while it lives:
 *     what is left is the next prefill chunk, or the one token of a decode step.
 * Q2: `rows[0, lease.length)` belong to the prefix cache, `rows[lease.length, allocated)` to the sequence.
 */

import type { FinishReason, GenerateRequest, GenerateResult, VersionSpan } from "../inference-engine.ts";
import type { RunItem } from "./policy-runner.ts";
import type { Lease, PrefixCache } from "./prefix-cache.ts";
import type { RowPool } from "./row-pool.ts";

export class Sequence {
  readonly request: GenerateRequest;
  /** Whether the caller wants tokens as they are made. */
  readonly isStreaming: boolean;
  readonly tokens: Int32Array;
  readonly rows: Int32Array;
  readonly deadlineAt: number;
  readonly logprobs: number[] = [];
  length: number;
  computed = 0;
  /** Rows taken, those for tokens still to compute included. */
  allocated = 0;
  lease: Lease | undefined;
  isAborted = false;
  /** Tokens already reported to a caller that streams. */
  reported = 0;
  readonly #spans: { version: number; tokenCount: number }[] = [];
  readonly #submittedAt: number;
  #startedAt: number | undefined;
  #firstTokenAt: number | undefined;
  #cachedTokens: number | undefined;

  /** @param maxContextTokens the model's; new tokens beyond it are cut off. */
  constructor(request: GenerateRequest, isStreaming: boolean, maxContextTokens: number, submittedAt: number) {
    this.request = request;
    this.isStreaming = isStreaming;
    const prompt = request.promptIds;
    const capacity = Math.min(prompt.length + request.sampling.maxNewTokens, maxContextTokens);
    this.tokens = new Int32Array(capacity);
    this.tokens.set(prompt);
    this.rows = new Int32Array(capacity);
    this.length = prompt.length;
    this.#submittedAt = submittedAt;
    this.deadlineAt = submittedAt + request.deadlineMs;
  }

  /** Tokens whose K/V is not there yet. At least one (Q1). */
  get pending(): number {
    return this.length - this.computed;
  }

  get isPrefilling(): boolean {
    return this.computed < this.request.promptIds.length || this.pending > 1;
  }

  get sampled(): number {
    return this.length - this.request.promptIds.length;
  }

  /** Takes what the cache knows. The last token is always computed, since its logits are needed. */
  start(cache: PrefixCache, now: number): void {
    this.lease = cache.match(this.tokens, this.length - 1, this.rows);
    this.computed = this.lease.length;
    this.allocated = this.lease.length;
    this.#startedAt ??= now;
  }

  /** Takes what has come to the cache since, where it has nothing of its own yet. */
  catchUp(cache: PrefixCache): void {
    if (this.lease === undefined || this.pending === 1 || this.lease.length < this.allocated) return;
    const before = this.lease;
    this.lease = cache.match(this.tokens, this.length - 1, this.rows);
    this.computed = this.lease.length;
    this.allocated = this.lease.length;
    cache.release(before);
  }

  /** Takes rows for its next `count` tokens. @returns false, taking none, when there are too few. */
  takeRows(pool: RowPool, count: number): boolean {
    const isTaken = pool.take(count, this.rows, this.allocated);
    if (isTaken) this.allocated += count;
    return isTaken;
  }

  /** The tokens that the next run computes for it: those whose rows are taken. */
  item(): RunItem {
    const count = this.allocated - this.computed;
    return {
      tokens: this.tokens,
      rows: this.rows,
      start: this.computed,
      count,
      wantsLogits: count === this.pending,
    };
  }

  /** Counts what was computed. A prefill is shared at once, so that its group finds it in the next step. */
  advance(cache: PrefixCache): void {
    const wasPrefilling = this.isPrefilling;
    this.#cachedTokens ??= this.computed;
    this.computed = this.allocated;
    if (wasPrefilling && this.lease !== undefined) {
      this.lease = cache.extend(this.lease, this.tokens, this.computed, this.rows);
    }
  }

  append(token: number, logprob: number, version: number, now: number): void {
    this.tokens[this.length++] = token;
    this.logprobs.push(logprob);
    const last = this.#spans.at(-1);
    if (last?.version === version) last.tokenCount++;
    else this.#spans.push({ version, tokenCount: 1 });
    this.#firstTokenAt ??= now;
  }

  /** Leaves its K/V to the cache, for its session's next turn and its group. */
  release(cache: PrefixCache, pool: RowPool): void {
    if (this.lease === undefined) return;
    this.lease = cache.extend(this.lease, this.tokens, this.computed, this.rows);
    this.discard(cache, pool);
  }

  /** Gives its rows back without keeping them. It can be started again, and repeats itself bit by bit. */
  discard(cache: PrefixCache, pool: RowPool): void {
    if (this.lease === undefined) return;
    for (let i = this.lease.length; i < this.allocated; i++) pool.give(this.rows[i]!);
    cache.release(this.lease);
    this.lease = undefined;
    this.computed = 0;
    this.allocated = 0;
  }

  result(finishReason: FinishReason, now: number): GenerateResult {
    const startedAt = this.#startedAt ?? now;
    const firstTokenAt = this.#firstTokenAt ?? now;
    return {
      ids: Array.from(this.tokens.subarray(this.request.promptIds.length, this.length)),
      logprobs: this.logprobs,
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
}
