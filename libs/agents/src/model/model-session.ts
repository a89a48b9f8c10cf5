/**
 * The model calls of one attempt: applies limits and seeds, stops the clock, records each call and traces it in a span.
 *
 * S1: A call that would exceed the rollout's turns or context fails with LimitReachedError.
 * S2: The error that ended a call is remembered: an agent that catches it does not change how its rollout ends.
 * S3: Where the attempt's tokens must not grow too old, a call may use no version that is too far ahead of its first token.
 * S4: The attempt's clock is stopped during a call, and the time of the successful generation is charged afterwards, so a dead
 *     or busy replica costs the attempt nothing.
 * S5: A call of a role that the run names goes to the role's policy, and is trained only where that policy learns.
 */

import { DeadlineError } from "@hone/core";
import { FinishReason, type OnNewVersion, type SamplingParameters } from "@hone/rl";
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
import type { GenerateCall, Policy, PolicyGeneration } from "../policies/policy.ts";
import type { AttemptClock } from "../rollout/attempt-clock.ts";
import type { Conversation, PreparedCall, ReadAnswerMessage, RecordedTurn } from "../rollout/conversation.ts";
import type { RolloutObserver } from "../rollout/rollout-observer.ts";
import { cutAt, StopTextFinder } from "../rollout/stop-text-finder.ts";

/** What a session needs; everything belongs to one attempt. */
export interface ModelSessionOptions {
  readonly conversation: Conversation;
  readonly policy: Policy;
  readonly clock: AttemptClock;
  readonly signal: AbortSignal;
  /** Parent of the spans of its calls. */
  readonly trace: Context;
  /** Name of the served model. */
  readonly model: string;
  /** Identifies the attempt. */
  readonly sessionId: string;
  readonly groupId: string;
  readonly sampling: SamplingParameters;
  readonly stopTokenIds: readonly number[];
  readonly maxTurns: number;
  /** Most tokens in one sample, including the prompt. */
  readonly maxContextTokens: number;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** See {@link GenerateCall.maxStaleness}; it counts from the attempt's first token. */
  readonly maxStaleness?: number | undefined;
  /** See {@link GenerateCall.onNewVersion}. */
  readonly onNewVersion?: OnNewVersion | undefined;
  /** The roles that the run names, and who plays them (S5). Absent = it names none. */
  readonly roles?: ReadonlyMap<string, RolePolicy> | undefined;
  /** Sampling seed of a turn. */
  readonly seedOfTurn: (turn: number) => number;
  readonly observer?: RolloutObserver | undefined;
}

/** Who answers the calls of a role. */
export interface RolePolicy {
  /** Name of the served model. */
  readonly model: string;
  /** Whether its answers are trained. */
  readonly isLearning: boolean;
  readonly lowestVersion: number;
  readonly highestVersion: number;
}

/** How one call is made. */
export interface CallOptions {
  /** Shown to the model by its chat template. */
  readonly tools?: readonly ChatTool[];
  /** See {@link CommitOptions}; the index of the turn is used in the ids of its tool calls. */
  readonly read?: (written: string, turnIndex: number, content: string) => ReadAnswerMessage;
  readonly onTokens?: (tokenIds: readonly number[]) => void;
  /** Called with the size of the context before anything is sampled. */
  readonly onPrompt?: (tokenCount: number) => void;
  /** Most tokens of the answer, in addition to the run's own limit. */
  readonly maxNewTokens?: number | undefined;
  /** Texts that end the answer; it is recorded up to and including the token that completed one of them. */
  readonly stopTexts?: readonly string[];
  /** Sampling seed for a context. @default the seed of the turn */
  readonly seedOf?: (promptIds: readonly number[]) => number;
  /** Ends only this call: it fails with ModelCallAbandonedError and is recorded as abandoned. */
  readonly signal?: AbortSignal;
  /** Whether the answer is trained. @default true */
  readonly learns?: boolean;
  /** The role that calls (S5). @default none */
  readonly role?: string | undefined;
  /** The policy that answers. @default the session's own */
  readonly policy?: Policy;
  /** Whether the rollout goes on after a full context if the agent then sends a shorter one. @default false */
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
  /** The error of the latest call that failed (S2); undefined = none failed. */
  failure: unknown;
  readonly #options: ModelSessionOptions;
  /** What single roles earned beside the rewards of turns, by role. */
  readonly roleRewards = new Map<string, number>();
  #started = 0;
  #firstVersion: number | undefined;

  constructor(options: ModelSessionOptions) {
    this.#options = options;
  }

  get renderer(): ChatRenderer {
    return this.#options.conversation.renderer;
  }

  /** The latest recorded turn; environments add their reward to it. */
  get lastTurn(): RecordedTurn | undefined {
    return this.#options.conversation.turns.at(-1);
  }

  /**
   * Adds to the reward of a turn.
   * @param index the turn; undefined = the latest.
   * @returns false when there is no such turn.
   */
  addReward(value: number, index?: number): boolean {
    const turn = index === undefined ? this.lastTurn : this.#options.conversation.turns[index];
    if (turn === undefined) return false;
    turn.reward = (turn.reward ?? 0) + value;
    return true;
  }

  /** Adds to what a role earned. */
  addRoleReward(role: string, value: number): void {
    this.roleRewards.set(role, (this.roleRewards.get(role) ?? 0) + value);
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
      // The agent can send other messages, or has given up the call itself: neither ends the rollout.
      const isOwn = error instanceof ChatTemplateError || error instanceof ModelCallAbandonedError;
      if (!isOwn) this.failure = error;
      throw error;
    }
  }

  /** Version of the attempt's first token; undefined before it. */
  get firstVersion(): number | undefined {
    return this.#firstVersion;
  }

  async #call(given: readonly ChatMessage[], options: CallOptions): Promise<ModelAnswer> {
    const { tools, read } = options;
    const player = this.#playerOf(options);
    const learns = options.learns !== false && player?.isLearning !== false;
    const { conversation, maxTurns, maxContextTokens, sampling, signal } = this.#options;
    signal.throwIfAborted();
    if (this.#started >= maxTurns) throw new LimitReachedError("turns", maxTurns);
    const prepared = conversation.prepare(given, tools, player === undefined ? "" : options.role);
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
    this.#options.observer?.onAnswer({
      turn,
      messages,
      tools: tools ?? [],
      promptIds,
      generation,
      isTrained: learns,
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
    const reported: number[] = [];
    const { onTokens } = options;
    const report = (tokenIds: readonly number[]) => {
      reported.push(...tokenIds);
      onTokens?.(tokenIds);
    };
    try {
      signal.throwIfAborted();
      return await this.#generate(prepared, turnIndex, maxNewTokens, {
        ...options,
        ...(onTokens !== undefined && { onTokens: report }),
      });
    } catch (error) {
      if (!signal.aborted || this.#options.signal.aborted) throw error;
      this.#options.conversation.abandon(prepared, reported);
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
    const { clock, sampling, trace, sessionId, groupId, onNewVersion } = this.#options;
    const player = this.#playerOf(options);
    const model = player?.model ?? this.#options.model;
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
        lowestVersion: (player ?? this.#options).lowestVersion,
        ...this.#newestVersion(player),
        ...(onNewVersion !== undefined && { onNewVersion }),
        deadlineMs: clock.remainingMs,
        trace: contextOf(span, trace),
        signal,
        ...(onTokens !== undefined && { onTokens }),
        ...(watch !== undefined && { stopSignal: watch.stopSignal }),
      });
      const generation = watch?.cut(made) ?? made;
      chargedMs = generation.generationMs;
      this.generationMs += chargedMs;
      this.#firstVersion ??= generation.versions[0]?.version;
      describe(span, prepared, generation);
      return generation;
    } catch (error) {
      // A call that its caller gave up has not failed.
      if (options.signal?.aborted === true) span.setAttribute(Attr.callAbandoned, true);
      else recordError(span, error);
      if (error instanceof DeadlineError) throw new AttemptTimedOutError(clock.deadlineMs);
      throw error;
    } finally {
      clock.start(chargedMs); // S4
      span.end();
    }
  }

  /** S5 */
  #playerOf({ role, policy }: CallOptions): RolePolicy | undefined {
    return role === undefined || policy !== undefined ? undefined : this.#options.roles?.get(role);
  }

  /** S3 */
  #newestVersion(player: RolePolicy | undefined): Pick<GenerateCall, "highestVersion" | "maxStaleness"> {
    const { maxStaleness } = this.#options;
    const { highestVersion } = player ?? this.#options;
    if (maxStaleness === undefined) return { highestVersion };
    const first = this.#firstVersion;
    const newest = first === undefined ? highestVersion : Math.min(highestVersion, first + maxStaleness);
    return { highestVersion: newest, maxStaleness };
  }

  /** Stops the policy when a stop text is complete, and removes the tokens that were generated after it. */
  #watch(stopTexts: readonly string[], { read, onTokens }: CallOptions) {
    if (stopTexts.length === 0) return undefined;
    const { tokenizer } = this.renderer;
    // In some formats the marks of calls are special tokens, and a stop text may contain them.
    const open = () => new StopTextFinder(tokenizer, stopTexts, { readsSpecialTokens: read !== undefined });
    const live = open();
    const stop = new AbortController();
    return {
      stopSignal: stop.signal,
      onTokens(tokenIds: readonly number[]) {
        const wasOver = live.isOver;
        live.push(tokenIds);
        if (live.isOver) stop.abort();
        if (!wasOver) onTokens?.(tokenIds);
      },
      cut(made: PolicyGeneration): PolicyGeneration {
        // The last tokens of the answer may not have been reported, so it is searched again.
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
