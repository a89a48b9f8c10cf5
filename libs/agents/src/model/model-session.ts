/**
 * The model calls of one attempt: limits, seeds, the clock, the record, and a span each.
 *
 * S1: A call never goes beyond the rollout's turns or context: it fails with LimitReachedError.
 * S2: What ended a call is remembered: an agent that catches the error does not change how its rollout ends.
 * S3: The attempt's clock stands during a call; the time of the generation that succeeded is charged afterwards, so
 *     a dead or busy replica costs the attempt nothing.
 */

import { DeadlineError } from "@hone/core";
import { FinishReason, type SamplingParameters } from "@hone/rl";
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
import { AttemptTimedOutError, LimitReachedError, ModelCallAbandonedError } from "../errors.ts";
import type { Policy, PolicyGeneration } from "../policies/policy.ts";
import type { AttemptClock } from "../rollout/attempt-clock.ts";
import type { Conversation, PreparedCall, ReadAnswerMessage, RecordedTurn } from "../rollout/conversation.ts";
import { cutAt, StopWatch } from "../rollout/stop-watch.ts";
import type { RolloutWitness } from "../rollout/witness.ts";

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
  /** See {@link CommitOptions}; the index of the turn makes names for its calls. */
  readonly read?: (written: string, turnIndex: number, content: string) => ReadAnswerMessage;
  readonly onTokens?: (tokenIds: readonly number[]) => void;
  /** Told of the size of the context, before anything is sampled. */
  readonly onPrompt?: (tokenCount: number) => void;
  /** Most tokens of the answer, beside the run's own limit. */
  readonly maxNewTokens?: number | undefined;
  /** They end the answer; with them in it, it is recorded up to the token that completed one. */
  readonly stopTexts?: readonly string[];
  /** @default that of the turn */
  readonly seedOf?: (promptIds: readonly number[]) => number;
  /** Ends this call alone: it fails with ModelCallAbandonedError, and is recorded as such. */
  readonly signal?: AbortSignal;
  /** Whether the answer is trained. @default true */
  readonly learns?: boolean;
  /** Who answers. @default the session's own */
  readonly policy?: Policy;
  /** Whether a full context ends the rollout only if the agent does not go on with a shorter one. @default false */
  readonly mayShorten?: boolean;
}

/** The answer to one call. */
export interface ModelAnswer {
  readonly turn: RecordedTurn;
  readonly generation: PolicyGeneration;
  readonly promptTokenCount: number;
  /** The whole context. */
  readonly promptIds: readonly number[];
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
   * Adds to the reward of a turn.
   * @param index of the turn; undefined = the latest.
   * @returns false when there is no such turn.
   */
  addReward(value: number, index?: number): boolean {
    const turn = index === undefined ? this.lastTurn : this.#options.conversation.turns[index];
    if (turn === undefined) return false;
    turn.reward = (turn.reward ?? 0) + value;
    return true;
  }

  /**
   * Asks the policy for the answer to a conversation and records it.
   * @throws {LimitReachedError | AttemptTimedOutError | PolicyUnavailableError | PolicyStaleError | PolicyRefusedError}
   */
  async call(messages: readonly ChatMessage[], options: CallOptions = {}): Promise<ModelAnswer> {
    try {
      const answer = await this.#call(messages, options);
      const { failure } = this;
      const wasFull = failure instanceof LimitReachedError && failure.limit === "context";
      if (wasFull && options.mayShorten === true) this.failure = undefined;
      return answer;
    } catch (error) {
      // What the agent may put right by other messages, or gave up itself, is no end.
      const isOwn = error instanceof ChatTemplateError || error instanceof ModelCallAbandonedError;
      if (!isOwn) this.failure = error;
      throw error;
    }
  }

  async #call(given: readonly ChatMessage[], options: CallOptions): Promise<ModelAnswer> {
    const { tools, read, learns } = options;
    const { conversation, maxTurns, maxContextTokens, sampling, signal } = this.#options;
    signal.throwIfAborted();
    if (this.#started >= maxTurns) throw new LimitReachedError("turns", maxTurns);
    const prepared = conversation.prepare(given, tools);
    const room = maxContextTokens - prepared.promptIds.length;
    if (room < 1) throw new LimitReachedError("context", maxContextTokens);
    const turnIndex = this.#started++;
    const maxNewTokens = Math.min(sampling.maxNewTokens, room, options.maxNewTokens ?? room);
    options.onPrompt?.(prepared.promptIds.length);
    const generation = await this.#generateOrAbandon(prepared, turnIndex, maxNewTokens, options);
    if (generation.tokenIds.length === 0) throw new AttemptTimedOutError(this.#options.clock.deadlineMs);
    const turn = conversation.commit(prepared, generation, {
      read: read === undefined ? undefined : (written, content) => read(written, turnIndex, content),
      learns,
    });
    const { messages, promptIds } = prepared;
    const isTrained = learns !== false;
    this.#options.witness?.onAnswer({
      turn,
      messages,
      tools: tools ?? [],
      promptIds,
      generation,
      isTrained,
    });
    if (generation.finishReason === FinishReason.aborted) {
      throw new AttemptTimedOutError(this.#options.clock.deadlineMs);
    }
    return { turn, generation, promptTokenCount: promptIds.length, promptIds };
  }

  async #generateOrAbandon(
    prepared: PreparedCall,
    turnIndex: number,
    maxNewTokens: number,
    options: CallOptions,
  ): Promise<PolicyGeneration> {
    const { signal } = options;
    if (signal === undefined) return this.#generate(prepared, turnIndex, maxNewTokens, options);
    const told: number[] = [];
    const { onTokens } = options;
    const tell = (tokenIds: readonly number[]) => {
      told.push(...tokenIds);
      onTokens?.(tokenIds);
    };
    try {
      signal.throwIfAborted();
      return await this.#generate(prepared, turnIndex, maxNewTokens, {
        ...options,
        ...(onTokens !== undefined && { onTokens: tell }),
      });
    } catch (error) {
      if (!signal.aborted || this.#options.signal.aborted) throw error;
      this.#options.conversation.abandon(prepared, told);
      throw new ModelCallAbandonedError({ cause: error });
    }
  }

  async #generate(
    prepared: PreparedCall,
    turnIndex: number,
    maxNewTokens: number,
    options: CallOptions,
  ): Promise<PolicyGeneration> {
    const { tools, stopTexts = [], seedOf } = options;
    const { clock, sampling, trace, model, sessionId, groupId } = this.#options;
    const policy = options.policy ?? this.#options.policy;
    const own = this.#options.signal;
    const signal = options.signal === undefined ? own : AbortSignal.any([own, options.signal]);
    const watch = this.#watch(stopTexts, options);
    const onTokens = watch?.onTokens ?? options.onTokens;
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
        [Attr.callKind]: prepared.kind,
      },
    });
    let chargedMs = 0;
    clock.stop();
    try {
      const made = await policy.generate({
        model,
        requestId: `${sessionId}/${turnIndex}`,
        promptIds: prepared.promptIds,
        messages: prepared.messages,
        ...(tools !== undefined && { tools }),
        sampling: { ...sampling, maxNewTokens },
        stopTokenIds: this.#options.stopTokenIds,
        seed: seedOf?.(prepared.promptIds) ?? this.#options.seedOfTurn(turnIndex),
        sessionId: `${sessionId}/${prepared.conversation}`,
        groupId,
        lowestVersion: this.#options.lowestVersion,
        highestVersion: this.#options.highestVersion,
        deadlineMs: clock.remainingMs,
        trace: contextOf(span, trace),
        signal,
        ...(onTokens !== undefined && { onTokens }),
        ...(watch !== undefined && { enough: watch.enough }),
      });
      const generation = watch?.cut(made) ?? made;
      chargedMs = generation.generationMs;
      this.generationMs += chargedMs;
      describe(span, prepared, generation);
      return generation;
    } catch (error) {
      // Nobody waits for it any more: no fault of the call's.
      if (options.signal?.aborted === true) span.setAttribute(Attr.callAbandoned, true);
      else recordError(span, error);
      if (error instanceof DeadlineError) throw new AttemptTimedOutError(clock.deadlineMs);
      throw error;
    } finally {
      clock.start(chargedMs); // S3
      span.end();
    }
  }

  /** Stops the policy where a stop text is complete, and cuts what it made beyond. */
  #watch(stopTexts: readonly string[], { read, onTokens }: CallOptions) {
    if (stopTexts.length === 0) return undefined;
    const { tokenizer } = this.renderer;
    // Marks of calls are special tokens in some formats, and text is what stands beside them.
    const open = () => new StopWatch(tokenizer, stopTexts, { readsSpecialTokens: read !== undefined });
    const live = open();
    const enough = new AbortController();
    return {
      enough: enough.signal,
      onTokens(tokenIds: readonly number[]) {
        const wasOver = live.isOver;
        live.push(tokenIds);
        if (live.isOver) enough.abort();
        if (!wasOver) onTokens?.(tokenIds);
      },
      cut(made: PolicyGeneration): PolicyGeneration {
        // What was told may stop short of the answer.
        const whole = open();
        whole.push(made.tokenIds);
        return whole.isOver ? cutAt(made, whole.tokenCount) : made;
      },
    };
  }
}

function describe(span: Span, prepared: PreparedCall, generation: PolicyGeneration): void {
  if (!span.isRecording()) return;
  span.setAttributes({
    [Attr.genAiInputTokens]: prepared.promptIds.length,
    [Attr.genAiOutputTokens]: generation.tokenIds.length,
    [Attr.genAiCachedTokens]: generation.cachedTokens,
    [Attr.genAiResponseFinishReasons]: [generation.finishReason],
    [Attr.replica]: generation.replica,
  });
  const version = generation.versions.at(-1)?.version;
  if (version !== undefined) span.setAttribute(Attr.policyVersion, version);
}
