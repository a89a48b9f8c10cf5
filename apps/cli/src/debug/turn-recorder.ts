/** Records a rollout while it is played: its turns with their tokens, tools and environment. */

import type { EnvironmentReset, EnvironmentStep, ObservedCall, RolloutObserver } from "@hone/agents";
import type { FinishReason } from "@hone/rl";
import type { ChatMessage, Tokenizer } from "@hone/tokenizer";

/** A token of a sample. */
export interface SeenToken {
  readonly id: number;
  readonly text: string;
  /** 1 = sampled, and so trained on. */
  readonly mask: 0 | 1;
  /** Log-probability of a sampled token under the sampling distribution; absent if it is unknown. */
  readonly logprob?: number;
}

export interface SeenToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** How it ended: `answered`, `failed`, `invalid`, `not_run`. */
  readonly kind: string;
  readonly text: string;
}

export interface SeenStep extends EnvironmentStep {
  /** The answer that the environment was given. */
  readonly answer: string;
}

export interface SeenTurn {
  /** From 0. */
  readonly turn: number;
  /** The training row that the turn belongs to, from 0, and whether it is the row's first turn. */
  readonly sample: number;
  readonly isNewSample: boolean;
  /** Messages that are new to the model in this sample. */
  readonly messages: readonly ChatMessage[];
  /** Names of the tools that were offered to the model. */
  readonly tools: readonly string[];
  /** Position of the first of {@link tokens} in the sample. */
  readonly begin: number;
  /** Tokens that the turn adds to the sample: first those that the model was shown, then those that it sampled. */
  readonly tokens: readonly SeenToken[];
  readonly answer: string;
  readonly finishReason: FinishReason;
  readonly generationMs: number;
  readonly toolCalls: readonly SeenToolCall[];
  readonly steps: readonly SeenStep[];
}

/** A turn whose tool calls and steps are still being added. */
interface OpenTurn extends SeenTurn {
  readonly toolCalls: SeenToolCall[];
  readonly steps: SeenStep[];
}

/** Is called for each event as it happens. */
export interface RolloutListener {
  onAttempt(attempt: number): void;
  onReset(reset: EnvironmentReset): void;
  onTurn(turn: SeenTurn): void;
  onToolCall(call: SeenToolCall): void;
  onStep(step: SeenStep): void;
  onFinish(reward: number): void;
  onFailure(error: unknown): void;
}

export interface TurnRecorderOptions {
  readonly tokenizer: Tokenizer;
  /** Whether sampled tokens may be trained on; false for the answers of an endpoint. */
  readonly isTrainable: boolean;
  readonly listener: RolloutListener;
}

/** Keeps the turns of the latest attempt. */
export class TurnRecorder implements RolloutObserver {
  turns: OpenTurn[] = [];
  reset: EnvironmentReset | undefined;
  readonly #options: TurnRecorderOptions;
  /** How many tokens and messages of each sample were reported. */
  #seen = new Map<number, { readonly tokens: number; readonly messages: number }>();

  constructor(options: TurnRecorderOptions) {
    this.#options = options;
  }

  onAttempt(attempt: number): void {
    this.turns = [];
    this.reset = undefined;
    this.#seen = new Map();
    this.#options.listener.onAttempt(attempt);
  }

  onReset(reset: EnvironmentReset): void {
    this.reset ??= reset;
    this.#options.listener.onReset(reset);
  }

  onAnswer({ turn, messages, tools, promptIds, generation, isTrained }: ObservedCall): void {
    const mask = isTrained && this.#options.isTrainable ? 1 : 0;
    const before = this.#seen.get(turn.sample) ?? { tokens: 0, messages: 0 };
    const added: OpenTurn = {
      turn: turn.index,
      sample: turn.sample,
      isNewSample: before.tokens === 0,
      messages: messages.slice(before.messages),
      tools: tools.map((tool) => tool.function.name),
      begin: before.tokens,
      tokens: [
        ...promptIds.slice(before.tokens).map((id) => this.#token(id, 0)),
        ...generation.tokenIds.map((id, index) => this.#token(id, mask, generation.logprobs[index])),
      ],
      answer: turn.responseText,
      finishReason: turn.finishReason,
      generationMs: generation.generationMs,
      toolCalls: [],
      steps: [],
    };
    // Counts the answer, which will be a message of the next call.
    this.#seen.set(turn.sample, { tokens: turn.sampledEnd, messages: messages.length + 1 });
    this.turns[turn.index] = added;
    this.#options.listener.onTurn(added);
  }

  onToolReply(
    { function: { name, arguments: args } }: Parameters<RolloutObserver["onToolReply"]>[0],
    { kind, text }: Parameters<RolloutObserver["onToolReply"]>[1],
    turn: Parameters<RolloutObserver["onToolReply"]>[2],
  ): void {
    const call = { name, arguments: args, kind, text };
    if (turn !== undefined) this.turns[turn.index]?.toolCalls.push(call);
    this.#options.listener.onToolCall(call);
  }

  onStep(answer: string, step: EnvironmentStep, turn: Parameters<RolloutObserver["onStep"]>[2]): void {
    const seen = { answer, ...step };
    if (turn !== undefined) this.turns[turn.index]?.steps.push(seen);
    this.#options.listener.onStep(seen);
  }

  onFinish(reward: number): void {
    this.#options.listener.onFinish(reward);
  }

  onFailure(error: unknown): void {
    this.#options.listener.onFailure(error);
  }

  #token(id: number, mask: 0 | 1, logprob?: number): SeenToken {
    const text = this.#options.tokenizer.decode([id]);
    return { id, text, mask, ...(logprob !== undefined && { logprob }) };
  }
}
