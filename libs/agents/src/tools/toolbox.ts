/** The tools of one agent in one configuration: created once and used by all its rollouts. */

import { InvalidInputError } from "@hone/core";
import type { ChatTool } from "@hone/tokenizer";
import type { ToolCallFormatName } from "../tool-calls/formats.ts";
import { ArgumentChecker } from "./check-arguments.ts";
import type { CutSide } from "./cut-answer.ts";
import type { Tool } from "./tool.ts";

/** Limits of tool calls. */
export interface ToolLimits {
  /** Most calls of one answer that are run; for the others, the answer says that they were not run. */
  readonly maxParallelCalls: number;
  /** Number of consecutive answers with only invalid calls after which the rollout ends. */
  readonly maxInvalidAnswers: number;
  /** Budget of one tool's answer. */
  readonly maxAnswerTokens: number;
  readonly cut: CutSide;
  /** Deadline of one call. */
  readonly deadlineMs: number;
  /** Most tries of a call that fails for a reason outside the agent. */
  readonly maxAttempts: number;
}

/** A tool with its chat description and the checker of its arguments. */
export interface ToolboxEntry {
  readonly tool: Tool;
  readonly chatTool: ChatTool;
  readonly checker: ArgumentChecker;
}

export class Toolbox {
  readonly limits: ToolLimits;
  /** Undefined = the format of the chat template. */
  readonly toolCallFormat: ToolCallFormatName | undefined;
  readonly #entries = new Map<string, ToolboxEntry>();

  /** @throws {InvalidInputError} when two tools have the same name, or a tool has no valid JSON schema. */
  constructor(tools: readonly Tool[], limits: ToolLimits, toolCallFormat?: ToolCallFormatName) {
    this.limits = limits;
    this.toolCallFormat = toolCallFormat;
    for (const tool of tools) {
      const { name, description, parameters } = tool;
      if (this.#entries.has(name))
        throw refusal(name, "must have a name of its own", "two tools have this one");
      this.#entries.set(name, {
        tool,
        chatTool: { type: "function", function: { name, description, parameters } },
        checker: checkerOf(tool),
      });
    }
  }

  get(name: string): ToolboxEntry | undefined {
    return this.#entries.get(name);
  }

  get entries(): readonly ToolboxEntry[] {
    return [...this.#entries.values()];
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }
}

function checkerOf({ name, parameters }: Tool): ArgumentChecker {
  try {
    return new ArgumentChecker(parameters, name);
  } catch (cause) {
    throw refusal(
      name,
      "must have a JSON schema for its arguments",
      `this one has ${JSON.stringify(parameters).slice(0, 200)}`,
      cause,
    );
  }
}

/** @param found a clause that says what was found instead. */
function refusal(name: string, rule: string, found: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `Cannot use the tool ${name}: each tool ${rule}, but ${found}`,
    { path: "tools", allowed: `tools each of which ${rule}` },
    { cause },
  );
}
