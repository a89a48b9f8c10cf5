/** The keys for tools in an agent's YAML file, and the toolbox that is built from them. */

import { type BoundKeys, ConfigError, readObjectBelow } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { z } from "zod";
import { checkConfig, unknownName } from "../definitions/check-input.ts";
import { TOOL_CALL_FORMAT_NAMES, type ToolCallFormatName } from "../tool-calls/formats.ts";
import { CutSide } from "./cut-answer.ts";
import { mcpServerSchema } from "./mcp-config.ts";
import { type Tool, type ToolBuildContext, toolNames, toolOf } from "./tool.ts";
import { readToolFile } from "./tool-file.ts";
import { Toolbox } from "./toolbox.ts";

/** What the process that builds an agent provides. */
export interface BuildContext extends ToolBuildContext {
  /** Tools of the run's own modules; they take precedence over those that come with Hone. */
  readonly tools?: Readonly<Record<string, Tool>>;
  /** What agents outside this process are given. @default nothing */
  readonly outside?: OutsideAccess | undefined;
}

/** What the service gives to agents that run outside it. */
export interface OutsideAccess {
  /** Keys of endpoints. */
  readonly keys: BoundKeys;
  /** Whether clients may ask for episodes. @default false */
  readonly lendsEpisodes?: boolean;
}

const wholeNumber = z.number().int();

/** Keys that all agents with tools share. */
export const toolConfigShape = {
  /** Registered tools, each by its name alone or with a configuration. */
  tools: z
    .array(
      z.union([
        z.string().min(1),
        z.strictObject({ name: z.string().min(1), config: z.record(z.string(), z.unknown()).default({}) }),
      ]),
    )
    .default([]),
  /** A file in verl's format, below HONE_FILES: `tools: [{ class_name, config, tool_schema }]`. */
  toolFile: z.string().min(1).optional(),
  /** Servers that speak the Model Context Protocol, by a name that errors mention. */
  mcpServers: z.record(z.string().min(1), mcpServerSchema).default({}),
  toolCallFormat: z.enum(["auto", ...TOOL_CALL_FORMAT_NAMES] as const).default("auto"),
  /** Most calls of one answer that are run. */
  maxParallelCalls: wholeNumber.min(1).max(64).default(8),
  /** Number of consecutive answers with only invalid calls after which the rollout ends. */
  maxInvalidAnswers: wholeNumber.min(1).max(1_000).default(3),
  /** Most tokens of one tool's answer. */
  maxToolAnswerTokens: wholeNumber.min(8).max(1_048_576).default(512),
  /** Which part of a longer answer is removed. */
  toolAnswerCut: z.enum([CutSide.left, CutSide.middle, CutSide.right]).default(CutSide.middle),
  /** Deadline of one call. */
  toolDeadlineMs: wholeNumber.min(1).max(86_400_000).default(30_000),
  /** Most tries of a call that fails for a reason outside the agent. */
  toolAttempts: wholeNumber.min(1).max(100).default(3),
};

const toolConfigSchema = z.object(toolConfigShape);
export type ToolConfig = z.output<typeof toolConfigSchema>;

/**
 * Creates the tools that a configuration names.
 * @throws {InvalidInputError} when a tool is unknown, or its configuration, its file or its schema is wrong.
 * @throws {InfrastructureError} when a server of tools cannot be reached.
 */
export async function buildToolbox(config: ToolConfig, context: BuildContext): Promise<Toolbox> {
  const named = await Promise.all(
    config.tools.map((entry, index) => {
      const { name, config: own } = typeof entry === "string" ? { name: entry, config: {} } : entry;
      return makeTool(name, own, `tools.${index}`, context);
    }),
  );
  const fromFile = config.toolFile === undefined ? [] : await toolsOfFile(config.toolFile, context);
  const fromServers = await toolsOfServers(config.mcpServers, context);
  return new Toolbox(
    [...named.flat(), ...fromFile, ...fromServers],
    {
      maxParallelCalls: config.maxParallelCalls,
      maxInvalidAnswers: config.maxInvalidAnswers,
      maxAnswerTokens: config.maxToolAnswerTokens,
      cut: config.toolAnswerCut,
      deadlineMs: config.toolDeadlineMs,
      maxAttempts: config.toolAttempts,
    },
    config.toolCallFormat === "auto" ? undefined : (config.toolCallFormat satisfies ToolCallFormatName),
  );
}

/** @param path where the agent's file names the tool, for errors. */
async function makeTool(
  name: string,
  config: Readonly<Record<string, unknown>>,
  path: string,
  context: BuildContext,
): Promise<readonly Tool[]> {
  const { tools: own = {} } = context;
  const ownTool = Object.hasOwn(own, name) ? own[name] : undefined;
  if (ownTool !== undefined) {
    const [key] = Object.keys(config);
    if (key === undefined) return [ownTool];
    throw refusal(`${path}.config`, "left out for a tool of the run's own modules", `has the key ${key}`);
  }
  const definition = toolOf(name);
  if (definition === undefined) {
    const [problem] = unknownName(name, [...Object.keys(own), ...toolNames()]);
    throw refusal(path, problem?.allowed ?? "a known tool", `is ${name}`);
  }
  const checked = checkConfig(definition.configSchema, config);
  if (checked.kind === "valid") {
    try {
      return [await definition.create(checked.config, context)].flat();
    } catch (cause) {
      if (!(cause instanceof InvalidInputError)) throw cause;
      throw refusal(
        `${path}.config.${cause.path}`,
        cause.allowed,
        `this does not fit (${cause.message})`,
        cause,
      );
    }
  }
  const [problem] = checked.problems;
  throw refusal(
    [path, "config", ...(problem?.path ?? []).map(String)].join("."),
    problem?.allowed ?? "as the tool says",
    problem?.value === undefined ? "is absent" : `is ${JSON.stringify(problem.value)}`,
  );
}

async function toolsOfServers(servers: ToolConfig["mcpServers"], context: BuildContext): Promise<Tool[]> {
  if (Object.keys(servers).length === 0) return [];
  // The protocol's client takes a while to load, and most agents have no servers.
  const { openMcpTools } = await import("./mcp-tools.ts");
  return openMcpTools(servers, context);
}

async function toolsOfFile(file: string, context: BuildContext): Promise<Tool[]> {
  let content: Record<string, unknown>;
  try {
    content = await readObjectBelow(context.filesFolder, file, "toolFile");
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw refusal(
      "toolFile",
      "a YAML file of tools",
      `${file} cannot be read as one (${cause.message})`,
      cause,
    );
  }
  return readToolFile(content, (name, config, path) => makeTool(name, config, path, context));
}

/** @param found a clause that says what was found instead. */
function refusal(path: string, allowed: string, found: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `Cannot create the tools: \`${path}\` must be ${allowed}, but ${found}`,
    { path, allowed },
    { cause },
  );
}
