/**
 * The agent `command`: a program in any language, which is started for each rollout in a process group of its own.
 *
 * Its environment variables hold the session and the task, and it may write a result to the file HONE_RESULT_FILE. How the
 * program ends decides how the rollout ends:
 *
 *   exit code 0                       completed, or truncated by the run's limits
 *   another exit code, SIGSEGV …      agent_failed
 *   SIGKILL, SIGTERM, SIGINT, SIGHUP  somebody else ended it: the attempt is repeated, and nothing is scored
 *   it cannot be started              the same
 */

import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  type AgentDefinition,
  type AgentResult,
  type AgentRollout,
  type AgentSession,
  type BuildContext,
  InfrastructureError,
} from "@hone/agents";
import { type AllowedProgram, type CommandAgentConfig, commandAgentSchema } from "@hone/config";
import { TerminalError } from "@hone/core";
import { type ProcessGroupEnd, runProcessGroup } from "@hone/sandbox";
import { traceVariables } from "@hone/telemetry";
import { checkRoles } from "./check-roles.ts";
import { MAX_RESULT_BYTES, outsideTaskOf, readOutsideResult } from "./outside-task.ts";

/** Most bytes that are kept of stdout and of stderr, from their ends. */
const MAX_TAIL_BYTES = 4_096;
/** Linux allows 128 KiB for one variable; a larger task is only in its file. */
const MAX_TASK_VARIABLE_BYTES = 65_536;
/** Signals that an operator, a supervisor or a kernel without memory sends to end a process. */
const SIGNALS_FROM_OUTSIDE: ReadonlySet<NodeJS.Signals> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"]);

/** The program failed by itself. */
export class CommandFailedError extends TerminalError {
  constructor(end: string, stderr: string) {
    const said =
      stderr.trim() === "" ? "" : `, and said last:\n${stderr.trim().slice(-MAX_SHOWN_CHARACTERS)}`;
    super("COMMAND_FAILED", `its command ended with ${end}${said}`);
  }
}

const MAX_SHOWN_CHARACTERS = 1_000;

export const commandAgent: AgentDefinition<CommandAgentConfig, AllowedProgram> = {
  configSchema: commandAgentSchema,
  needsEnvironment: false,
  needsRow: true,
  buildGraph: buildCommand,
  run: runCommand,
};

/** @throws {InvalidInputError} where commands are not allowed, or the program or the key of a role is missing. */
async function buildCommand(
  { command, environment, roles }: CommandAgentConfig,
  { gate, outside }: BuildContext,
): Promise<AllowedProgram> {
  const [program = "", ...args] = command;
  const allowed = await gate.program({ program, args, environment }, "agent.command");
  checkRoles(roles, outside);
  return allowed;
}

async function runCommand(
  program: AllowedProgram,
  rollout: AgentRollout<CommandAgentConfig>,
): Promise<AgentResult> {
  const { config, signal } = rollout;
  const session = rollout.openSession({ roles: config.roles, takesRewards: config.rewards === "session" });
  const task = JSON.stringify(outsideTaskOf(rollout));
  const folder = await mkdtemp(path.join(tmpdir(), "hone-agent-"));
  try {
    const files = { task: path.join(folder, "task.json"), result: path.join(folder, "result.json") };
    await writeFile(files.task, task);
    const end = await runProcessGroup({
      command: [program.file, ...program.args],
      folder: program.folder,
      environment: {
        ...traceVariables(),
        ...program.environment,
        ...sessionVariables(session),
        ...(Buffer.byteLength(task) <= MAX_TASK_VARIABLE_BYTES && { HONE_TASK: task }),
        HONE_TASK_FILE: files.task,
        HONE_RESULT_FILE: files.result,
        TMPDIR: folder,
      },
      signal,
      maxTailBytes: MAX_TAIL_BYTES,
    });
    signal.throwIfAborted();
    checkEnd(end, program);
    const result = readOutsideResult(await resultIn(files.result), "HONE_RESULT_FILE");
    return { ...result, metadata: { ...result.metadata, ...outputOf(end) } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The variables that clients of both APIs read, and the same values under Hone's own names. */
function sessionVariables({ url, key, model }: AgentSession): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: key,
    HONE_SESSION_URL: url,
    HONE_SESSION_KEY: key,
    HONE_MODEL: model,
  };
}

/** @throws {InfrastructureError | CommandFailedError} unless the program ended with exit code 0. */
function checkEnd(end: ProcessGroupEnd, { file }: AllowedProgram): void {
  if (end.kind === "exited") {
    if (end.code === 0) return;
    throw new CommandFailedError(`exit code ${end.code}`, end.stderr);
  }
  if (end.kind === "not_started") {
    throw new InfrastructureError("start the agent", "its command does not start", `${file}: ${end.reason}`);
  }
  if (!SIGNALS_FROM_OUTSIDE.has(end.signal)) throw new CommandFailedError(end.signal, end.stderr);
  throw new InfrastructureError("complete the rollout", "its command was killed from outside", end.signal);
}

async function resultIn(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > MAX_RESULT_BYTES) {
      throw new SyntaxError(
        `HONE_RESULT_FILE has ${size} bytes; a result may have at most ${MAX_RESULT_BYTES}`,
      );
    }
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function outputOf({ stdout, stderr }: ProcessGroupEnd): Record<string, string> {
  return { ...(stdout !== "" && { stdout }), ...(stderr !== "" && { stderr }) };
}
