/** One generation on an inference server, with the tokens of all of its calls so far. */

import { deriveSeed } from "@hone/core";
import type { FinishReason, VersionSpan } from "@hone/rl";
import type {
  EngineGeneration,
  GenerateRequest,
  TokenChunk,
  TokenLogprob,
} from "../domain/inference-engine.ts";
import type { ServerCall, ServerChunk, ServerWeights } from "./engine-server.ts";

type OnTokens = ((chunk: TokenChunk) => void) | undefined;

export class ServerGeneration {
  readonly request: GenerateRequest;
  readonly #onTokens: OnTokens;
  readonly #most: number;
  readonly #ending = new AbortController();
  #moving = new AbortController();
  readonly #tokenIds: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #tops: (readonly TokenLogprob[])[] = [];
  readonly #versions: { version: number; tokenCount: number }[] = [];
  #cachedTokens = 0;
  readonly #calledAt = performance.now();
  #beganAt: number | undefined;
  #firstTokenAt: number | undefined;
  /** Why it must end before the server ends it. */
  ended: FinishReason | undefined;
  /** The error that it fails with. */
  failure: Error | undefined;

  /** @param maxContextTokens prompt and answer together. */
  constructor(request: GenerateRequest, maxContextTokens: number, onTokens: OnTokens) {
    this.request = request;
    this.#onTokens = onTokens;
    this.#most = Math.min(request.sampling.maxNewTokens, maxContextTokens - request.promptIds.length);
  }

  /** Aborts when the generation must settle. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether its current call was cut off so that it continues on other weights. */
  get isMoving(): boolean {
    return this.#moving.signal.aborted;
  }

  get isFull(): boolean {
    return this.#tokenIds.length >= this.#most;
  }

  get tokenCount(): number {
    return this.#tokenIds.length;
  }

  get lastTokenId(): number | undefined {
    return this.#tokenIds.at(-1);
  }

  /** Version of its first token, once the call that made it has ended. */
  get firstVersion(): number | undefined {
    return this.#versions[0]?.version;
  }

  /** Ends the generation; the first reason counts. */
  end(reason: FinishReason): void {
    if (this.#ending.signal.aborted) return;
    this.ended = reason;
    this.#ending.abort();
  }

  fail(failure: Error): void {
    if (this.#ending.signal.aborted) return;
    this.failure = failure;
    this.#ending.abort(failure);
  }

  /** Cuts its current call off, so that it continues with another one. */
  move(): void {
    this.#moving.abort();
  }

  /** Notes that the generation runs now. */
  begin(): void {
    this.#beganAt ??= performance.now();
  }

  /** Another call, for the missing tokens; its signal aborts when the call must end. */
  nextCall(weights: ServerWeights): { readonly call: ServerCall; readonly signal: AbortSignal } {
    this.#moving = new AbortController();
    const { promptIds, sampling, seed } = this.request;
    const made = this.#tokenIds.length;
    const call = {
      promptIds: [...promptIds, ...this.#tokenIds],
      sampling,
      maxNewTokens: this.#most - made,
      // With the same seed it would draw the same numbers for other positions.
      seed: made === 0 ? seed : deriveSeed(seed, made),
      weights,
      isStreaming: this.#onTokens !== undefined,
    };
    return { call, signal: AbortSignal.any([this.#ending.signal, this.#moving.signal]) };
  }

  /** At temperature 0 the distribution is a point, whatever logprobs the server gives. */
  take({ tokenIds: given, logprobs: told, topLogprobs: tops = [], cachedTokens }: ServerChunk): void {
    if (cachedTokens !== undefined && this.#versions.length === 0) this.#cachedTokens = cachedTokens;
    const tokenIds = given.slice(0, this.#most - this.#tokenIds.length);
    if (tokenIds.length === 0) return;
    this.#firstTokenAt ??= performance.now();
    const { temperature, topLogprobs = 0 } = this.request.sampling;
    const logprobs = tokenIds.map((_, i) => (temperature === 0 ? 0 : Math.min(0, Math.fround(told[i]!))));
    const likeliest = tokenIds.map((tokenId, i) =>
      temperature === 0 ? [{ tokenId, logprob: 0 }] : likeliestOf(tops[i] ?? [], topLogprobs),
    );
    this.#tokenIds.push(...tokenIds);
    this.#logprobs.push(...logprobs);
    if (topLogprobs > 0) this.#tops.push(...likeliest);
    this.#onTokens?.({ tokenIds, logprobs, ...(topLogprobs > 0 && { topLogprobs: likeliest }) });
  }

  /** Sets the versions of the last call's tokens. */
  attribute(spans: readonly VersionSpan[]): void {
    for (const { version, tokenCount } of spans) {
      const last = this.#versions.at(-1);
      if (tokenCount === 0) continue;
      if (last?.version === version) last.tokenCount += tokenCount;
      else this.#versions.push({ version, tokenCount });
    }
  }

  result(finishReason: FinishReason): EngineGeneration {
    const now = performance.now();
    const beganAt = this.#beganAt ?? now;
    const firstTokenAt = this.#firstTokenAt ?? now;
    const cachedTokens = Math.min(this.#cachedTokens, this.request.promptIds.length);
    return {
      tokenIds: this.#tokenIds,
      logprobs: this.#logprobs,
      ...((this.request.sampling.topLogprobs ?? 0) > 0 && { topLogprobs: this.#tops }),
      finishReason,
      versions: this.#versions,
      metrics: {
        prefillTokens: this.request.promptIds.length - cachedTokens,
        cachedTokens,
        queueMs: beganAt - this.#calledAt,
        prefillMs: firstTokenAt - beganAt,
        decodeMs: now - firstTokenAt,
      },
    };
  }
}

function likeliestOf(tops: readonly TokenLogprob[], count: number): TokenLogprob[] {
  return tops
    .map(({ tokenId, logprob }) => ({ tokenId, logprob: Math.min(0, Math.fround(logprob)) }))
    .sort((a, b) => b.logprob - a.logprob || a.tokenId - b.tokenId)
    .slice(0, count);
}
