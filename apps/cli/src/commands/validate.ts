/** `hone validate FILE`: checks a run file, and where a stack is up asks the services as well. */

import { resolve } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ConfigError } from "@hone/config";
import { BusUnavailableError, request, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { honeCommand } from "../define.ts";
import { shownPath, userFolder } from "../project.ts";
import { type LoadedRun, loadRunFile, problemLines } from "../run/load-run-file.ts";
import type { Session } from "../session.ts";
import { readStack, type StackRecord } from "../stack/stack-file.ts";
import { connectTo } from "../stack/use-stack.ts";

const ANSWER_TIMEOUT_MS = 5_000;

export const validateCommand = honeCommand({
  name: "validate",
  description: "Check a run file; with a stack up, also ask the services that the run needs",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
  },
  run: async (session, args) => {
    const file = resolve(userFolder(), args.file);
    const { terminal, project } = session;
    let loaded: LoadedRun;
    try {
      loaded = await loadRunFile(file, project.folder);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return tellProblems(session, file, problemLines(error.problems));
    }
    const stack = readStack(project);
    const problems = stack === undefined ? [] : await askServices(session, stack, loaded);
    if (problems.length > 0) return tellProblems(session, file, problems);
    const asked =
      stack === undefined
        ? "no stack is up: agents, environments and judges were not checked"
        : "the services agree";
    terminal.line(`${shownPath(file)} is valid (${asked})`);
    return 0;
  },
});

function tellProblems({ terminal }: Session, file: string, lines: readonly string[]): number {
  terminal.line(`${shownPath(file)} is not valid:`);
  for (const line of lines) terminal.line(`  ${line}`);
  return 1;
}

async function askServices(session: Session, stack: StackRecord, loaded: LoadedRun): Promise<string[]> {
  const bus = await connectTo(stack, "validate", session.signal);
  try {
    const answers = await Promise.all(
      Object.values(ValidatingService).map(async (service) => {
        try {
          const reply = await request(
            bus,
            subjects.validate(service),
            ValidateRequestSchema,
            create(ValidateRequestSchema, { configJson: loaded.text }),
            ValidateReplySchema,
            { timeoutMs: ANSWER_TIMEOUT_MS, signal: session.signal },
          );
          return problemLines(reply.problems);
        } catch (error) {
          if (!(error instanceof BusUnavailableError)) throw error;
          return [`${service} does not answer, so its part was not checked`];
        }
      }),
    );
    return answers.flat();
  } finally {
    await bus.close();
  }
}
