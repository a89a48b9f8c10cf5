/** `hone validate FILE`: checks a run file and everything that it names, without starting anything. */

import { resolve } from "node:path";
import { ConfigError } from "@hone/config";
import type { CheckedPart } from "../check/check-run.ts";
import { honeCommand } from "../define.ts";
import { localEnvironment, shownPath, userFolder } from "../project.ts";
import { type LoadedRun, loadRunFile, problemLines } from "../run/load-run-file.ts";
import type { Session } from "../session.ts";
import { readStack } from "../stack/stack-file.ts";
import { table } from "../terminal.ts";

export const validateCommand = honeCommand({
  name: "validate",
  description:
    "Check a run file and its model, rows, agents, tools and judges; asks the services of a stack that is up",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
  },
  run: async (session, args) => {
    const file = resolve(userFolder(), args.file);
    const { project } = session;
    let loaded: LoadedRun;
    try {
      loaded = await loadRunFile(file, project.folder);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return report(session, file, [{ name: "run file", text: "", problems: problemLines(error.problems) }]);
    }
    const { name, seed } = loaded.config;
    const runFile = { name: "run file", text: `${name}, seed ${seed}`, problems: [] };
    return report(session, file, [runFile, ...(await checkParts(session, loaded))]);
  },
});

/** Asks the services of a stack that is up, as they know their own settings; otherwise their code checks the run here. */
async function checkParts(session: Session, loaded: LoadedRun): Promise<CheckedPart[]> {
  const { project } = session;
  const stack = readStack(project);
  const { checkModel, checkRun } = await import("../check/check-run.ts");
  if (stack === undefined) return checkRun(loaded, session);
  const { askServices } = await import("../check/ask-services.ts");
  const { connectTo } = await import("../stack/use-stack.ts");
  const model = await checkModel(loaded, localEnvironment(project), session);
  const bus = await connectTo(stack, "validate", session.signal);
  try {
    const asked = await askServices(bus, loaded, session.signal);
    return [...model.filter(({ name }) => name !== "engine"), ...asked];
  } finally {
    await bus.close();
  }
}

/** Prints what was found. @returns the exit code. */
function report({ terminal }: Session, file: string, parts: readonly CheckedPart[]): number {
  const problems = parts.flatMap((part) => part.problems);
  terminal.line(`${shownPath(file)} is ${problems.length === 0 ? "valid" : "not valid:"}`);
  for (const problem of problems) terminal.line(`  ${problem}`);
  const rows = parts.map(({ name, text, problems: found, skipped }) => {
    if (skipped !== undefined) return [terminal.style("yellow", "not checked"), name, skipped];
    return [found.length === 0 ? terminal.style("green", "ok") : terminal.style("red", "wrong"), name, text];
  });
  for (const line of table(rows)) terminal.line(`  ${line}`);
  return problems.length === 0 ? 0 : 1;
}
