/**
 * The tools that run the model's code in the sandbox that all agents of this process share: `python`, and `execute_python`,
 * which has the name and the form of answer of ChatLearn's tool.
 */

import { defineTool, type Tool, type ToolBuildContext } from "@hone/agents";
import { unreachable } from "@hone/core";
import { PythonSandbox, type PythonSession, type RunResult } from "@hone/sandbox";
import { z } from "zod";

const wholeNumber = z.number().int();

export const pythonConfigSchema = z.strictObject({
  /** Time limit of one call. */
  timeMs: wholeNumber.min(100).max(600_000).default(5_000),
  /** Output beyond this is dropped. */
  maxOutputBytes: wholeNumber.min(100).max(10_000_000).default(100_000),
  /** Whether later calls of a rollout know the names of earlier ones. */
  keepsState: z.boolean().default(false),
});
export type PythonConfig = z.output<typeof pythonConfigSchema>;

/** A call may wait for a free process of the sandbox, while the attempt's clock stands, and for its session to be made again. */
const WAIT_MS = 900_000;

/** What a tool shows of a run. */
interface PythonToolForm {
  readonly name: string;
  readonly textOf: (result: RunResult, config: PythonConfig) => string;
}

export function makePythonTool(config: PythonConfig, context: ToolBuildContext): Tool {
  return makeTool({ name: "python", textOf: plainText }, config, context);
}

export function makeExecutePythonTool(config: PythonConfig, context: ToolBuildContext): Tool {
  return makeTool({ name: "execute_python", textOf: taggedText }, config, context);
}

function makeTool({ name, textOf }: PythonToolForm, config: PythonConfig, context: ToolBuildContext): Tool {
  const { sandbox = new PythonSandbox() } = context;
  if (context.sandbox === undefined) context.onClose(() => sandbox.close());
  const { timeMs, maxOutputBytes, keepsState } = config;
  return defineTool<PythonSession | undefined>({
    name,
    description: `Runs Python code and returns what it prints. Standard library only, no files, no network, ${timeMs} ms.${
      keepsState ? " Names stay between calls." : ""
    }`,
    parameters: {
      type: "object",
      properties: { code: { type: "string", description: "Python code that prints its results" } },
      required: ["code"],
      additionalProperties: false,
    },
    deadlineMs: timeMs + WAIT_MS,
    open: async () => (keepsState ? sandbox.open() : undefined),
    async call({ code }, { state, signal, wait }) {
      const runner = state ?? sandbox;
      return textOf(await runner.run(String(code), { timeMs, maxOutputBytes }, signal, wait), config);
    },
    close: (state) => state?.close(),
  });
}

const OUTPUT_CUT = "[output cut]";

/** What the code printed, then its error or the value of its last expression. */
function plainText(result: RunResult, config: PythonConfig): string {
  if (result.kind !== "finished") return `Error: ${whyStopped(result, config)}`;
  const parts = [result.output];
  if (result.isOutputCut) parts.push(OUTPUT_CUT);
  if (result.error !== undefined) parts.push(result.error);
  else if (result.value !== "") parts.push(result.value);
  const text = parts.map((part) => part.trimEnd()).filter((part) => part !== "");
  return text.length === 0 ? "(no output)" : text.join("\n");
}

/** What the code printed, as a program would have; a run that was stopped has the return code -1. */
function taggedText(result: RunResult, config: PythonConfig): string {
  if (result.kind !== "finished") return tagged(-1, "", `Error: ${whyStopped(result, config)}`);
  const { output, isOutputCut, error } = result;
  const printed = isOutputCut ? `${output}\n${OUTPUT_CUT}` : output;
  return tagged(error === undefined ? 0 : 1, printed, error ?? "");
}

function tagged(returnCode: number, output: string, error: string): string {
  return `<returncode>${returnCode}</returncode><stdout>${output}</stdout><stderr>${error}</stderr>`;
}

function whyStopped(
  result: Exclude<RunResult, { readonly kind: "finished" }>,
  { timeMs }: PythonConfig,
): string {
  switch (result.kind) {
    case "timed_out":
      return `the code took longer than ${timeMs} ms and was stopped.`;
    case "out_of_memory":
      return "the code used more memory than it may and was stopped.";
    case "crashed":
      return "the code ended its process.";
    default:
      return unreachable(result);
  }
}
