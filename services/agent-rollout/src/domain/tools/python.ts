/**
 * The tools that run the model's code in the sandbox that all agents of this process share: `python`, and `execute_python`,
 * which has the name and the form of answer of ChatLearn's tool.
 */

import { defineTool, InfrastructureError, type Tool, type ToolBuildContext } from "@hone/agents";
import { InvalidInputError, unreachable } from "@hone/core";
import { PackageError, PythonSandbox, type PythonSession, type RunResult, WheelSet } from "@hone/sandbox";
import { z } from "zod";

const wholeNumber = z.number().int();
const packageName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "the name of a package");

export const pythonConfigSchema = z.strictObject({
  /** Time limit of one call. */
  timeMs: wholeNumber.min(100).max(600_000).default(5_000),
  /** Output beyond this is dropped. */
  maxOutputBytes: wholeNumber.min(100).max(10_000_000).default(100_000),
  /** Whether later calls of a rollout know the names of earlier ones. */
  keepsState: z.boolean().default(false),
  /** Packages of the operator's folder that the code can import, each with the digest that its wheel must have, if it is given. */
  packages: z
    .array(
      z.union([
        packageName,
        z.strictObject({
          name: packageName,
          sha256: z
            .string()
            .regex(/^[0-9a-fA-F]{64}$/, "64 hexadecimal digits")
            .optional(),
        }),
      ]),
    )
    .max(64)
    .default([]),
});
export type PythonConfig = z.output<typeof pythonConfigSchema>;

/** A call may wait for a free process of the sandbox, while the attempt's clock stands, and for its session to be made again. */
const WAIT_MS = 900_000;

/** What a tool shows of a run. */
interface PythonToolForm {
  readonly name: string;
  readonly textOf: (result: RunResult, config: PythonConfig) => string;
}

export function makePythonTool(config: PythonConfig, context: ToolBuildContext): Promise<Tool> {
  return makeTool({ name: "python", textOf: plainText }, config, context);
}

export function makeExecutePythonTool(config: PythonConfig, context: ToolBuildContext): Promise<Tool> {
  return makeTool({ name: "execute_python", textOf: taggedText }, config, context);
}

async function makeTool(
  { name, textOf }: PythonToolForm,
  config: PythonConfig,
  context: ToolBuildContext,
): Promise<Tool> {
  const wheels = await wheelsOf(config, context);
  const { sandbox = new PythonSandbox() } = context;
  if (context.sandbox === undefined) context.onClose(() => sandbox.close());
  const { timeMs, maxOutputBytes, keepsState } = config;
  const known = wheels.wheels.map((wheel) => `${wheel.name} ${wheel.version}`);
  const library = known.length === 0 ? "Standard library only" : `Standard library and ${known.join(", ")}`;
  return defineTool<PythonSession>({
    name,
    description: `Runs Python code and returns what it prints. ${library}, no files, no network, ${timeMs} ms.${
      keepsState ? " Names stay between calls." : ""
    }`,
    parameters: {
      type: "object",
      properties: { code: { type: "string", description: "Python code that prints its results" } },
      required: ["code"],
      additionalProperties: false,
    },
    materials: () => wheels.materials,
    deadlineMs: timeMs + WAIT_MS,
    open: () => sandbox.open(wheels),
    async call({ code }, { state, signal, wait }) {
      const session = keepsState ? state : sandbox.open(wheels);
      try {
        return textOf(await session.run(String(code), { timeMs, maxOutputBytes }, signal, wait), config);
      } catch (error) {
        if (!(error instanceof PackageError)) throw error;
        // The operator's packages are no mistake of the model.
        throw new InfrastructureError("run code", "a package does not work", error.message, { cause: error });
      } finally {
        if (session !== state) session.close();
      }
    },
    close: (state) => state.close(),
  });
}

/** @throws {InvalidInputError} when the operator's folder does not have a package as the run wants it. */
async function wheelsOf({ packages }: PythonConfig, context: ToolBuildContext): Promise<WheelSet> {
  if (packages.length === 0) return WheelSet.none;
  const refusal = (problem: string, allowed: string, cause?: unknown) =>
    new InvalidInputError(problem, { path: "packages", allowed }, { cause });
  if (context.packages === undefined) {
    throw refusal(
      "there is no folder of packages for the sandbox (HONE_SANDBOX_PACKAGES of agent-rollout)",
      "left out where the operator names no folder of packages",
    );
  }
  try {
    return await context.packages.choose(
      packages.map((wanted) => (typeof wanted === "string" ? { name: wanted } : wanted)),
    );
  } catch (error) {
    if (!(error instanceof PackageError)) throw error;
    throw refusal(error.message, error.allowed, error);
  }
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
