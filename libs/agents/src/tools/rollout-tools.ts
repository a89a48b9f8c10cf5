/**
 * The tools of one attempt: the calls of the model are checked, run and answered with text.
 *
 * U1: every call gets an answer, whatever the model wrote; only failures outside the agent fail the attempt.
 * U2: a call that fails for a reason outside the agent (RetryableError) is tried again. If it still fails, the attempt fails,
 *     even if the agent catches the error: `failure` remembers it. So does a call whose tool cannot work with the task's row
 *     (BadRowError), which is not tried again.
 * U3: an answer is cut to the budget of tokens, and says where it was cut.
 */

import { DeadlineError, deadline, describeError, pause, RetryableError } from "@hone/core";
import {
  Attr,
  AttrValue,
  type Context,
  contextOf,
  counterOf,
  Instrument,
  recordError,
  runBelow,
  SpanName,
  startSpan,
} from "@hone/telemetry";
import type { ChatToolCall, Tokenizer } from "@hone/tokenizer";
import type { AgentTask } from "../definitions/agent-task.ts";
import { BadRowError } from "../errors.ts";
import type { AttemptClock } from "../rollout/attempt-clock.ts";
import type { RecordedTurn } from "../rollout/conversation.ts";
import type { RolloutObserver } from "../rollout/rollout-observer.ts";
import { cutAnswer } from "./cut-answer.ts";
import type { Tool, ToolAnswer, ToolReply } from "./tool.ts";
import type { Toolbox, ToolboxEntry } from "./toolbox.ts";

/** What the tools need to know about their attempt. */
export interface RolloutToolsOptions {
  readonly tokenizer: Tokenizer;
  readonly trace: Context;
  readonly signal: AbortSignal;
  /** The clock of the attempt. */
  readonly clock: AttemptClock;
  readonly seed: number;
  readonly task: AgentTask;
  /** Maps the names of tools to what the row gives them. */
  readonly toolsKwargs: Readonly<Record<string, unknown>>;
  /** Names of the tools that the row may use; undefined = all. */
  readonly toolSelection: readonly string[] | undefined;
  /** The turn whose calls are answered; it gets the rewards of tools. */
  readonly lastTurn: () => RecordedTurn | undefined;
  readonly observer?: RolloutObserver | undefined;
}

/** Counts the valid calls of one tool. */
export interface ToolUse {
  readonly name: string;
  readonly calls: number;
  readonly failed: number;
  /** Message of the last failure; empty = none failed. */
  readonly error: string;
}

/** Pauses between the tries of a call (U2). */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
const CLOSE_DEADLINE_MS = 5_000;
/** Longest part of an error message that is kept in {@link ToolUse}. */
const MAX_ERROR_CHARACTERS = 500;

const retries = counterOf(Instrument.retries).of({ part: "tool" });

export class RolloutTools {
  /** Sum of the rewards that tools gave. */
  totalReward = 0;
  /** See U2. */
  failure: RetryableError | BadRowError | undefined;
  readonly #toolbox: Toolbox;
  readonly #options: RolloutToolsOptions;
  readonly #entries: ReadonlyMap<string, ToolboxEntry>;
  /** By the names of states, with the tool that opened each. */
  readonly #states = new Map<string, { readonly tool: Tool; readonly opening: Promise<unknown> }>();
  /** Number of calls of the latest turn that were answered one by one. */
  #oneByOne: { readonly turn: RecordedTurn | undefined; count: number } = { turn: undefined, count: 0 };
  readonly #uses = new Map<string, ToolUse>();
  readonly #materials: Record<string, readonly string[]> = {};
  readonly #metrics: Record<string, number> = {
    tool_calls: 0,
    tool_calls_failed: 0,
    tool_calls_invalid: 0,
    tool_answers_cut: 0,
  };

  constructor(toolbox: Toolbox, options: RolloutToolsOptions) {
    this.#toolbox = toolbox;
    this.#options = options;
    const { toolSelection } = options;
    this.#entries = new Map(
      toolbox.entries
        .filter(({ tool }) => toolSelection === undefined || toolSelection.includes(tool.name))
        .map((entry) => [entry.tool.name, entry]),
    );
  }

  /** The tools that this rollout may use and that the model is shown. */
  get entries(): readonly ToolboxEntry[] {
    return [...this.#entries.values()];
  }

  metrics(): Readonly<Record<string, number>> {
    return this.#metrics;
  }

  /** The uses of all tools, ordered by name. */
  uses(): readonly ToolUse[] {
    return [...this.#uses.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** What the tools that were used worked with, by the name of their state; see {@link Tool.materials}. */
  materials(): Readonly<Record<string, readonly string[]>> {
    return this.#materials;
  }

  /**
   * Runs the calls of one answer of the model in parallel. @returns the replies in the order of the calls.
   * @throws {RetryableError} when one fails for a reason outside the agent (U2).
   * @throws the signal's reason when it aborts.
   */
  async answerAll(calls: readonly ChatToolCall[]): Promise<ToolReply[]> {
    const replies = await Promise.all(calls.map((call, index) => this.#answerWithinCap(call, index)));
    const turn = this.#options.lastTurn();
    if (turn !== undefined) {
      turn.info = { ...turn.info, isValid: replies.every(({ kind }) => kind !== "invalid") };
    }
    return replies;
  }

  /** Answers one of several calls of an answer, for graphs that run each call separately. @throws as {@link answerAll}. */
  async answerOneByOne(call: ChatToolCall): Promise<ToolReply> {
    const turn = this.#options.lastTurn();
    if (turn !== this.#oneByOne.turn) this.#oneByOne = { turn, count: 0 };
    return this.#answerWithinCap(call, this.#oneByOne.count++);
  }

  /** Answers one call. @throws as {@link answerAll}. */
  async answer(call: ChatToolCall): Promise<ToolReply> {
    const { name, arguments: args } = call.function;
    const entry = this.#entries.get(name);
    this.#add({ tool_calls: 1 });
    if (entry === undefined) {
      return this.#invalid(call, `Unknown tool "${name}". Tools: ${[...this.#entries.keys()].join(", ")}.`);
    }
    const problem = this.#problemOf(entry, args);
    if (problem !== undefined) return this.#invalid(call, `Invalid arguments for ${name}. ${problem}`);
    return this.#run(call, entry.tool);
  }

  /** Counts calls that could not be read. The caller shows the error to the model. */
  countUnreadable(count: number): void {
    this.#add({ tool_calls: count, tool_calls_invalid: count });
    const turn = this.#options.lastTurn();
    if (turn !== undefined && count > 0) turn.info = { ...turn.info, isValid: false };
  }

  /** Closes the state that tools keep for this rollout, even if some fail to close. @returns the errors. */
  async close(): Promise<unknown[]> {
    const results = await Promise.allSettled(
      [...this.#states.values()].map(async ({ tool, opening }) => {
        if (tool.close === undefined) return;
        const close = tool.close.bind(tool);
        const state = await opening;
        await deadline(`the tool ${tool.name} to close`, CLOSE_DEADLINE_MS, async () => close(state));
      }),
    );
    return results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
  }

  /** @param index position of the call in its answer. */
  async #answerWithinCap(call: ChatToolCall, index: number): Promise<ToolReply> {
    const { maxParallelCalls } = this.#toolbox.limits;
    if (index < maxParallelCalls) return this.answer(call);
    return this.#reply(call, "not_run", `Not run: at most ${maxParallelCalls} calls at once.`);
  }

  #problemOf({ checker }: ToolboxEntry, args: ChatToolCall["function"]["arguments"]): string | undefined {
    try {
      return checker.problemOf(args);
    } catch (error) {
      if (error instanceof RetryableError) this.failure ??= error; // U2
      throw error;
    }
  }

  async #run(call: ChatToolCall, tool: Tool): Promise<ToolReply> {
    const span = startSpan(SpanName.executeTool(tool.name), {
      parent: this.#options.trace,
      attributes: {
        [Attr.genAiOperation]: AttrValue.operationExecuteTool,
        [Attr.genAiToolName]: tool.name,
        [Attr.genAiToolCallId]: call.id,
      },
    });
    try {
      const below = contextOf(span, this.#options.trace);
      const answer = await runBelow(below, () => this.#callWithRetries(call, tool));
      const { text, reward, metrics } = typeof answer === "string" ? { text: answer } : { ...answer };
      if (reward !== undefined) this.#addReward(reward);
      if (metrics !== undefined) this.#add(metrics);
      this.#count(tool);
      return this.#reply(call, "answered", text);
    } catch (error) {
      recordError(span, error);
      this.#options.signal.throwIfAborted();
      if (error instanceof DeadlineError) {
        return this.#failed(call, tool, `${tool.name} took longer than ${error.waitedForMs} ms.`);
      }
      if (error instanceof RetryableError || error instanceof BadRowError) {
        this.failure ??= error; // U2
        throw error;
      }
      return this.#failed(call, tool, describeError(error));
    } finally {
      span.end();
    }
  }

  async #callWithRetries(call: ChatToolCall, tool: Tool): Promise<ToolAnswer | string> {
    const { maxAttempts, deadlineMs } = this.#toolbox.limits;
    const { signal } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await deadline(
          tool.name,
          tool.deadlineMs ?? deadlineMs,
          async (ended) => {
            const state = await this.#stateOf(tool);
            const wait = <T>(work: () => Promise<T>) => this.#wait(work);
            try {
              return await tool.call(call.function.arguments, { state, signal: ended, wait });
            } finally {
              this.#noteMaterials(tool, state);
            }
          },
          { signal },
        );
      } catch (error) {
        if (!(error instanceof RetryableError) || error instanceof DeadlineError) throw error;
        if (signal.aborted || attempt >= maxAttempts) throw error;
        retries.add();
        await pause(Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (attempt - 1)), signal);
      }
    }
  }

  async #wait<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    clock.stop();
    try {
      return await work();
    } finally {
      clock.start(0);
    }
  }

  async #stateOf(tool: Tool): Promise<unknown> {
    if (tool.open === undefined) return undefined;
    const { stateName = tool.name } = tool;
    const known = this.#states.get(stateName);
    if (known !== undefined) return known.opening;
    const { toolsKwargs, seed, task } = this.#options;
    const opening = Promise.resolve(tool.open({ kwargs: kwargsOf(toolsKwargs[stateName]), seed, task }));
    this.#states.set(stateName, { tool, opening });
    // A failure is not cached: the next call tries again.
    opening.catch(() => this.#states.delete(stateName));
    return opening;
  }

  #noteMaterials(tool: Tool, state: unknown): void {
    const materials = tool.materials?.(state) ?? [];
    if (materials.length > 0) this.#materials[tool.stateName ?? tool.name] = materials;
  }

  #invalid(call: ChatToolCall, text: string): ToolReply {
    this.#add({ tool_calls_invalid: 1 });
    return this.#reply(call, "invalid", text);
  }

  #failed(call: ChatToolCall, tool: Tool, error: string): ToolReply {
    this.#add({ tool_calls_failed: 1 });
    this.#count(tool, error);
    return this.#reply(call, "failed", `Error: ${error}`);
  }

  /** @param error message of the failure; undefined = the call succeeded. */
  #count({ name }: Tool, error?: string): void {
    const known = this.#uses.get(name) ?? { name, calls: 0, failed: 0, error: "" };
    const use = { ...known, calls: known.calls + 1 };
    this.#uses.set(
      name,
      error === undefined
        ? use
        : { ...use, failed: known.failed + 1, error: error.slice(0, MAX_ERROR_CHARACTERS) },
    );
  }

  /** U3 */
  #reply(call: ChatToolCall, kind: ToolReply["kind"], text: string): ToolReply {
    const { maxAnswerTokens: maxTokens, cut: side } = this.#toolbox.limits;
    const cut = cutAnswer(text, { tokenizer: this.#options.tokenizer, maxTokens, side });
    if (cut.isCut) this.#add({ tool_answers_cut: 1 });
    const reply = { id: call.id, name: call.function.name, text: cut.text, kind };
    this.#options.observer?.onToolReply(call, reply, this.#options.lastTurn());
    return reply;
  }

  #addReward(reward: number): void {
    this.totalReward += reward;
    const turn = this.#options.lastTurn();
    if (turn !== undefined) turn.reward = (turn.reward ?? 0) + reward;
  }

  #add(values: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(values)) {
      this.#metrics[name] = (this.#metrics[name] ?? 0) + value;
    }
  }
}

/** Rows in verl's format hold `{ <tool>: { create_kwargs: {…} } }`. */
function kwargsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return {};
  if ("create_kwargs" in value && typeof value.create_kwargs === "object" && value.create_kwargs !== null) {
    return { ...value.create_kwargs };
  }
  return { ...value };
}
