/**
 * The model calls of one attempt: limits, seeds, the clock, the record, and a span each.
 *
 * S1: A call never goes beyond the rollout's turns or context: it fails with LimitReachedError.
 * S2: What ended a call is remembered: an agent that catches the error does not change how its rollout ends.
 * S3: The attempt's clock stands during a call; the time of the generation that succeeded is charged afterwards, so
 *     a dead or busy replica costs the attempt nothing.
 */

import { DeadlineError } from "@hone/core";
import {
  Attr,
  AttrValue,
  type Context,
  contextOf,
  recordError,
  type Span,
  SpanKind,
  SpanName,
  startSpan,
} from "@hone/telemetry";
import { type ChatMessage, type ChatRenderer, ChatTemplateError, type ChatTool } from "@hone/tokenizer";
import type { AttemptClock } from "./attempt-clock.ts";
import type { Conversation, PreparedCall, RecordedTurn } from "./conversation.ts";
import { AttemptTimedOutError, LimitReachedError } from "./errors.ts";
import { FinishReason, type Generation, type Policy, type SamplingParameters } from "./policy.ts";
import type { RolloutWitness } from "./witness.ts";

/** What a session needs; everything belongs to one attempt. */
export interface ModelSessionOptions {
  readonly conversation: Conversation;
  readonly policy: Policy;
  readonly clock: AttemptClock;
  readonly signal: AbortSignal;
  /** Span below which its calls stand. */
  readonly trace: Context;
  /** Name of the served model. */
  readonly model: string;
  /** Names the attempt. */
  readonly sessionId: string;
  readonly groupId: string;
  readonly sampling: SamplingParameters;
  readonly stopTokenIds: readonly number[];
  readonly maxTurns: number;
  /** Most tokens in one sample, prompt included. */
  readonly maxContextTokens: number;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** Sampling seed of a turn. */
  readonly seedOfTurn: (turn: number) => number;
  readonly witness?: RolloutWitness | undefined;
}

/** How one call is made. */
export interface CallOptions {
  /** Shown to the model by its chat template. */
  readonly tools?: readonly ChatTool[];
  /** See {@link Conversation.commit}; the index of the turn makes names for its calls. */
  readonly read?: (written: string, turnIndex: number) => Pick<ChatMessage, "content" | "tool_calls">;
  readonly onTokens?: (tokenIds: readonly number[]) => void;
}

/** The answer to one call. */
export interface ModelAnswer {
  readonly turn: RecordedTurn;
  readonly generation: Generation;
  readonly promptTokenCount: number;
}

export class ModelSession {
  /** Time spent generating, in milliseconds. */
  generationMs = 0;
  /** What ended the latest call that failed (S2); undefined = none did. */
  failure: unknown;
  readonly #options: ModelSessionOptions;
  #started = 0;

  constructor(options: ModelSessionOptions) {
    this.#options = options;
  }

  get renderer(): ChatRenderer {
    return this.#options.conversation.renderer;
  }

  /** The turn that was recorded last; environments add their reward to it. */
  get lastTurn(): RecordedTurn | undefined {
    return this.#options.conversation.turns.at(-1);
  }

  /**
   * Asks the policy for the answer to a conversation and records it.
   * @throws {LimitReachedError | AttemptTimedOutError | PolicyUnavailableError | PolicyStaleError | PolicyRefusedError}
   */
  async call(messages: readonly ChatMessage[], options: CallOptions = {}): Promise<ModelAnswer> {
    try {
      return await this.#call(messages, options);
    } catch (error) {
      // What the agent may put right by other messages is no end.
      if (!(error instanceof ChatTemplateError)) this.failure = error;
      throw error;
    }
  }

  async #call(given: readonly ChatMessage[], options: CallOptions): Promise<ModelAnswer> {
    const { tools, read } = options;
    const { conversation, maxTurns, maxContextTokens, sampling, signal } = this.#options;
    signal.throwIfAborted();
    if (this.#started >= maxTurns) throw new LimitReachedError("turns", maxTurns);
    const prepared = conversation.prepare(given, tools);
    const room = maxContextTokens - prepared.contextIds.length;
    if (room < 1) throw new LimitReachedError("context", maxContextTokens);
    const turnIndex = this.#started++;
    const maxNewTokens = Math.min(sampling.maxNewTokens, room);
    const generation = await this.#generate(prepared, turnIndex, maxNewTokens, options);
    if (generation.tokenIds.length === 0) throw new AttemptTimedOutError(this.#options.clock.deadlineMs);
    const turn = conversation.commit(
      prepared,
      generation,
      read === undefined ? undefined : (written) => read(written, turnIndex),
    );
    const { messages, contextIds } = prepared;
    this.#options.witness?.onAnswer({ turn, messages, tools: tools ?? [], contextIds, generation });
    if (generation.finishReason === FinishReason.aborted) {
      throw new AttemptTimedOutError(this.#options.clock.deadlineMs);
    }
    return { turn, generation, promptTokenCount: prepared.contextIds.length };
  }

  async #generate(
    prepared: PreparedCall,
    turnIndex: number,
    maxNewTokens: number,
    { tools, onTokens }: CallOptions,
  ): Promise<Generation> {
    const { clock, policy, sampling, trace, model, sessionId, groupId, signal } = this.#options;
    const span = startSpan(SpanName.chat(model), {
      parent: trace,
      kind: SpanKind.CLIENT,
      attributes: {
        [Attr.genAiOperation]: AttrValue.operationChat,
        [Attr.genAiProvider]: AttrValue.providerHone,
        [Attr.genAiRequestModel]: model,
        [Attr.genAiRequestTemperature]: sampling.temperature,
        [Attr.genAiRequestMaxTokens]: maxNewTokens,
        [Attr.turn]: turnIndex,
      },
    });
    let chargedMs = 0;
    clock.stop();
    try {
      const generation = await policy.generate({
        model,
        requestId: `${sessionId}/${turnIndex}`,
        promptIds: prepared.contextIds,
        messages: prepared.messages,
        ...(tools !== undefined && { tools }),
        sampling: { ...sampling, maxNewTokens },
        stopTokenIds: this.#options.stopTokenIds,
        seed: this.#options.seedOfTurn(turnIndex),
        sessionId: `${sessionId}/${prepared.conversation}`,
        groupId,
        lowestVersion: this.#options.lowestVersion,
        highestVersion: this.#options.highestVersion,
        deadlineMs: clock.remainingMs,
        trace: contextOf(span, trace),
        signal,
        ...(onTokens !== undefined && { onTokens }),
      });
      chargedMs = generation.generationMs;
      this.generationMs += chargedMs;
      describe(span, prepared, generation);
      return generation;
    } catch (error) {
      recordError(span, error);
      if (error instanceof DeadlineError) throw new AttemptTimedOutError(clock.deadlineMs);
      throw error;
    } finally {
      clock.start(chargedMs); // S3
      span.end();
    }
  }
}

function describe(span: Span, prepared: PreparedCall, generation: Generation): void {
  if (!span.isRecording()) return;
  span.setAttributes({
    [Attr.genAiInputTokens]: prepared.contextIds.length,
    [Attr.genAiOutputTokens]: generation.tokenIds.length,
    [Attr.genAiCachedTokens]: generation.cachedTokens,
    [Attr.genAiResponseFinishReasons]: [generation.finishReason],
    [Attr.replica]: generation.replica,
  });
  const version = generation.versions.at(-1)?.version;
  if (version !== undefined) span.setAttribute(Attr.policyVersion, version);
}
