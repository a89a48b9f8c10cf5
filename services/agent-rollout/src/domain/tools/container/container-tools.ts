/**
 * The tools of `container`: a shell, and reading, writing and changing files, in a container of the attempt's own. For tasks on
 * repositories, such as SWE-bench's.
 *
 * What a command does wrong is an answer that the model reads. What the runtime does wrong is a failure outside the agent.
 */

import {
  BadRowError,
  defineTool,
  type Tool,
  type ToolBuildContext,
  type ToolContext,
  type ToolRollout,
} from "@hone/agents";
import { InvalidInputError } from "@hone/core";
import { type CommandEnd, ContainerRefusedError, type ContainerSpec } from "@hone/sandbox";
import { AttemptContainer } from "./attempt-container.ts";
import { type ContainerConfig, imageName } from "./config.ts";
import { readWholeFile, replaceOnce, sliceLines, writeWholeFile } from "./container-files.ts";

/** The name of the four together, in agents' files and in rows. */
const NAME = "container";
/** Calls wait for others of their attempt, and for a place on the machine, while the attempt's clock stands. */
const WAIT_MS = 3_600_000;

const path = { type: "string", description: "Path of a file, absolute or from the work folder" };

export function makeContainerTools(config: ContainerConfig, context: ToolBuildContext): readonly Tool[] {
  const { containers } = context;
  if (containers === undefined) {
    throw new InvalidInputError("agent-rollout has no container runtime (HONE_CONTAINER_SOCKET)", {
      path: "image",
      allowed: "left out with its tool where the operator names no container runtime",
    });
  }
  // Without an image of its own, each row's is checked when it is played.
  if (config.image !== undefined)
    refuseAsInput(() => containers.check({ ...config, image: config.image ?? "" }));
  const { timeMs, workFolder } = config;
  const shared = {
    stateName: NAME,
    deadlineMs: timeMs + WAIT_MS,
    open: (rollout: ToolRollout) => {
      const spec = specOf(config, rollout);
      try {
        containers.check(spec);
      } catch (error) {
        if (!(error instanceof ContainerRefusedError)) throw error;
        throw new BadRowError(rollout.task.id, error.message);
      }
      return new AttemptContainer(containers, spec);
    },
    materials: ({ image }: AttemptContainer) => (image === undefined ? [] : [`image ${image}`]),
    close: (state: AttemptContainer) => state.close(),
  };
  const runner =
    ({ state, signal, wait }: ToolContext<AttemptContainer>) =>
    (command: readonly string[], maxOutputBytes: number) =>
      state.run({ command, timeMs, maxOutputBytes, signal }, wait);
  return [
    defineTool<AttemptContainer>({
      ...shared,
      name: "shell",
      description: `Runs a command in a Linux container without network, in ${workFolder}, for at most ${timeMs} ms. Files stay between calls; variables and the current folder do not.`,
      parameters: parametersOf({ command: { type: "string", description: "Command for the shell" } }),
      call: async ({ command }, context) => {
        const run = runner(context);
        return textOf(await run([config.shell, "-c", String(command)], config.maxOutputBytes), timeMs);
      },
    }),
    defineTool<AttemptContainer>({
      ...shared,
      name: "read_file",
      description: "Shows a text file of the container, or some of its lines.",
      parameters: parametersOf(
        {
          path,
          from_line: { type: "integer", minimum: 1, description: "First line to show" },
          num_lines: { type: "integer", minimum: 1, description: "How many lines to show" },
        },
        ["path"],
      ),
      call: async ({ path, from_line: from, num_lines: count }, context) =>
        sliceLines(
          await readWholeFile(String(path), runner(context)),
          Number(from ?? 1),
          Number(count ?? Infinity),
        ),
    }),
    defineTool<AttemptContainer>({
      ...shared,
      name: "write_file",
      description: "Writes a text file of the container; what it held before is replaced.",
      parameters: parametersOf({ path, content: { type: "string", description: "The whole text" } }),
      call: async ({ path, content }, context) => {
        await writeWholeFile(String(path), String(content), runner(context));
        return `Wrote ${String(path)}.`;
      },
    }),
    defineTool<AttemptContainer>({
      ...shared,
      name: "edit_file",
      description: "Replaces a text that occurs once in a file of the container by another text.",
      parameters: parametersOf({
        path,
        old_text: { type: "string", minLength: 1, description: "Text to replace, exactly as in the file" },
        new_text: { type: "string", description: "Text in its place" },
      }),
      call: async ({ path, old_text: from, new_text: to }, context) => {
        const run = runner(context);
        const text = await readWholeFile(String(path), run);
        await writeWholeFile(String(path), replaceOnce(text, String(from), String(to)), run);
        return `Changed ${String(path)}.`;
      },
    }),
  ];
}

function parametersOf(
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = Object.keys(properties),
): Readonly<Record<string, unknown>> {
  return { type: "object", properties, required, additionalProperties: false };
}

/** @throws {BadRowError} when neither the configuration nor the row names an image. */
function specOf(config: ContainerConfig, { kwargs, task }: ToolRollout): ContainerSpec {
  const { data: image, success: isName } = imageName.safeParse(kwargs.image ?? config.image);
  if (!isName) {
    throw new BadRowError(
      task.id,
      `neither its \`tools_kwargs.${NAME}.image\` nor the tool's configuration has the name of an image`,
    );
  }
  const { memoryMib, cpus, maxProcesses, workFolder, workMib, copyFrom, user, lifeMs } = config;
  return { image, memoryMib, cpus, maxProcesses, workFolder, workMib, copyFrom, user, lifeMs };
}

/** The tool's answer to the model. */
function textOf(end: CommandEnd, timeMs: number): string {
  if (end.kind === "lost") return lostText(end.reason);
  const { bytes, droppedBytes, droppedAt } = end.output;
  const parts =
    droppedBytes === 0
      ? [bytes.toString()]
      : [
          bytes.subarray(0, droppedAt).toString(),
          `\n[... ${droppedBytes} bytes cut ...]\n`,
          bytes.subarray(droppedAt).toString(),
        ];
  const printed = parts.join("").trimEnd();
  const notes: string[] = [];
  if (end.kind === "timed_out") {
    notes.push(
      `[took longer than ${timeMs} ms and was ended, with everything else that ran in the container]`,
    );
    if (end.isLost) notes.push(lostText("it could not be ended otherwise"));
  } else if (end.exitCode !== 0) notes.push(`[exit code ${end.exitCode}]`);
  else if (printed === "") notes.push("(no output)");
  return [printed, ...notes].filter((part) => part !== "").join("\n");
}

function lostText(reason: string): string {
  return `[the container had to be replaced: ${reason}. Its files are as at the start]`;
}

/** @throws {InvalidInputError} instead of a refusal. */
function refuseAsInput(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ContainerRefusedError)) throw error;
    throw new InvalidInputError(error.message, { path: error.key, allowed: error.allowed }, { cause: error });
  }
}
