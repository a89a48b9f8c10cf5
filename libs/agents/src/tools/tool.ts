/**
 * Tools: functions that a model may call, found by name.
 *
 * A tool is created once for each configuration of an agent. Its state for one rollout is created by `open`, from the row's
 * `tools_kwargs`, and released by `close`. The model is shown the message of an error that a tool throws. A RetryableError
 * means that something outside the agent failed: the call is tried again, and the failure is never scored.
 */

import type { BoundKeys, CodeGate } from "@hone/config";
import type { ContainerHost, PackageFolder, PythonSandbox } from "@hone/sandbox";
import type { z } from "zod";
import type { AgentTask } from "../definitions/agent-task.ts";
import { Registry } from "../definitions/registry.ts";

/** What a call gets beside its arguments. */
export interface ToolContext<State> {
  /** What `open` created for this rollout. */
  readonly state: State;
  /** Aborts at the deadline of the call, and when the answer is no longer needed. */
  readonly signal: AbortSignal;
  /**
   * Waits for a resource of Hone itself, such as a place in the sandbox; the attempt's clock is stopped meanwhile. The deadline
   * of the call goes on, so it must be at least as long as the wait may be.
   */
  wait<T>(work: () => Promise<T>): Promise<T>;
}

/** What `open` gets to know about its rollout. */
export interface ToolRollout {
  /** The entry under the tool's name in the row's `tools_kwargs`; if it has verl's `create_kwargs`, the value of that key. */
  readonly kwargs: Readonly<Record<string, unknown>>;
  /** Seed for anything random; the same at every attempt of a rollout. */
  readonly seed: number;
  /** The task with its whole row. The row may hold the right answer: what a tool says of it, the model knows. */
  readonly task: AgentTask;
}

/** The answer of a tool. */
export interface ToolAnswer {
  readonly text: string;
  /** Added to the turn that called the tool. */
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
  /**
   * What it works with that a run file does not fix by itself, such as packages with their digests; recorded with each rollout
   * that used the tool.
   */
  materials?(state: State): readonly string[];
  /** Name under which tools share one state of a rollout, which the first of them opens. @default the tool's own */
  readonly stateName?: string;
  /** Deadline of a call. @default that of the agent */
  readonly deadlineMs?: number;
  open?(rollout: ToolRollout): Promise<State> | State;
  call(
    args: Readonly<Record<string, unknown>>,
    context: ToolContext<State>,
  ): Promise<ToolAnswer | string> | ToolAnswer | string;
  /** Releases the state of a rollout. */
  close?(state: State): Promise<void> | void;
}

/** What the process that creates a tool provides. */
export interface ToolBuildContext {
  /** HONE_FILES: paths in an agent's file are relative to it. */
  readonly filesFolder: string;
  /** Finds the programs and modules that an agent's file names. */
  readonly gate: CodeGate;
  /**
   * Whether this only checks that the tool can be created: nothing outside is started or asked, and the tool is not used.
   * @default false
   */
  readonly isCheck?: boolean;
  /** Secrets that tools may send to their servers; the names of their variables begin with HONE_TOOL_. */
  readonly secrets: BoundKeys;
  /** Runs code that models write, for all agents of this process. @default the tool creates its own */
  readonly sandbox?: PythonSandbox;
  /** Packages that the operator lets such code use. @default there are none */
  readonly packages?: PackageFolder | undefined;
  /** Makes containers, where the operator allows them. @default there are none */
  readonly containers?: ContainerHost | undefined;
  /** Registers a function that is called when the agent is no longer used, to release what was opened. */
  readonly onClose: (close: () => Promise<void>) => void;
}

/** One tool, or several that belong together. */
export type MadeTools = Tool | readonly Tool[];

/** How a tool is created from its configuration. */
export interface ToolDefinition<Config> {
  readonly configSchema: z.ZodType<Config>;
  /** @throws {InvalidInputError} whose path is that of the key within the configuration. */
  create(config: Config, context: ToolBuildContext): MadeTools | Promise<MadeTools>;
}

const tools = new Registry<ToolDefinition<unknown>>("a tool");

/** Defines a tool; the type of its state is inferred. */
export function defineTool<State>(tool: Tool<State>): Tool {
  return {
    ...tool,
    call: (args, context) => tool.call(args, context as ToolContext<State>),
    ...(tool.materials !== undefined && { materials: (state) => tool.materials?.(state as State) ?? [] }),
    ...(tool.close !== undefined && { close: (state) => tool.close?.(state as State) }),
  } as Tool;
}

/**
 * Registers a tool by name, for `tools` in agents' files and `class_name` in tool files.
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

/** What the model is shown as the answer to one call of a tool. */
export interface ToolReply {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly kind: "answered" | "failed" | "invalid" | "not_run";
}
