/**
 * Tools: functions that a model may call, found by name.
 *
 * A tool is made once for each configuration of an agent; what it keeps for one rollout is its state, made by `open` with
 * what the row's `tools_kwargs` say and given back by `close`. What it throws is told to the model as text; a
 * RetryableError says that something outside of the agent failed: it is tried again and never scored.
 */

import type { BoundKeys, CodeGate } from "@hone/config";
import type { PythonSandbox } from "@hone/sandbox";
import type { z } from "zod";
import { Registry } from "../definitions/registry.ts";

/** What a call comes with. */
export interface ToolContext<State> {
  /** What `open` made for this rollout. */
  readonly state: State;
  /** Aborts at the deadline of the call, and when nobody wants the answer any more. */
  readonly signal: AbortSignal;
  /**
   * Waits for something of Hone's own, such as a place in the sandbox: the attempt's clock stands meanwhile. The deadline of
   * the call does not, and is to be as long as the wait may be.
   */
  wait<T>(work: () => Promise<T>): Promise<T>;
}

/** What `open` is told of its rollout. */
export interface ToolRollout {
  /** What the row's `tools_kwargs` hold under the tool's name; verl's `create_kwargs` are taken out of their object. */
  readonly kwargs: Readonly<Record<string, unknown>>;
  /** For whatever is random; the same at every attempt of a rollout. */
  readonly seed: number;
}

/** What a tool answers. */
export interface ToolAnswer {
  readonly text: string;
  /** Goes to the turn that called. */
  readonly reward?: number;
  /** Summed over the rollout's calls, for the run's metrics. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** One tool, as the model sees it and as it runs. */
export interface Tool<State = unknown> {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments, an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Longest time of a call. @default that of the agent */
  readonly deadlineMs?: number;
  open?(rollout: ToolRollout): Promise<State> | State;
  call(
    args: Readonly<Record<string, unknown>>,
    context: ToolContext<State>,
  ): Promise<ToolAnswer | string> | ToolAnswer | string;
  /** Gives back the state of a rollout. */
  close?(state: State): Promise<void> | void;
}

/** Where a tool is made. */
export interface ToolBuildContext {
  /** HONE_FILES: paths of an agent's file resolve below it. */
  readonly filesFolder: string;
  /** By which programs and modules are found that an agent's file names. */
  readonly gate: CodeGate;
  /**
   * Whether this is only to find out if it can be made: then nothing outside is started or asked, and what is made is not used.
   * @default false
   */
  readonly isCheck?: boolean;
  /** Secrets that tools may send to their servers; the names of their variables begin with HONE_TOOL_. */
  readonly secrets: BoundKeys;
  /** Runs a model's code, for all agents of this process. @default one of the tool's own */
  readonly sandbox?: PythonSandbox;
  /** Told how to give back what was opened, once nobody uses the agent any more. */
  readonly onClose: (close: () => Promise<void>) => void;
}

/** How a tool that has a configuration is made. */
export interface ToolDefinition<Config> {
  readonly configSchema: z.ZodType<Config>;
  create(config: Config, context: ToolBuildContext): Tool;
}

const tools = new Registry<ToolDefinition<unknown>>("a tool");

/** Infers the type of a tool's state. */
export function defineTool<State>(tool: Tool<State>): Tool {
  return {
    ...tool,
    call: (args, context) => tool.call(args, context as ToolContext<State>),
    ...(tool.close !== undefined && { close: (state) => tool.close?.(state as State) }),
  } as Tool;
}

/**
 * Makes a tool known by name: to agents' `tools`, and as `class_name` to tool files.
 * @throws {DuplicateNameError} when the name is taken.
 */
export function registerTool<Config>(name: string, definition: ToolDefinition<Config>): void {
  tools.add(name, {
    configSchema: definition.configSchema,
    create: (config, context) => definition.create(config as Config, context),
  });
}

export function toolOf(name: string): ToolDefinition<unknown> | undefined {
  return tools.get(name);
}

export function toolNames(): string[] {
  return tools.names();
}

/** What the model reads of one call of a tool. */
export interface ToolReply {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly kind: "answered" | "failed" | "invalid" | "not_run";
}
