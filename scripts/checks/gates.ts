/**
 * Programs and code that a user names are started through the gate (libs/config/src/gates/code-gate.ts) only.
 *
 * Every file that can start a program or run code is listed here, with who names the program. A new file that starts one fails this
 * check until it does one of two things: where a run file, an agent's file or a row names the program, it takes an AllowedProgram or
 * a UserModule from the gate; where the operator or Hone itself names it, it gets a line in the list.
 *
 * P1: only the listed files start programs.
 * P2: a file that starts programs of users takes them from the gate.
 * P3: only the gate imports modules whose name is computed, and threads run files of this repository.
 */

import {
  isDevelopmentOnly,
  isGenerated,
  type Problem,
  type SourceFile,
  type Workspace,
} from "./workspace.ts";

/** A path, or the beginning of paths -> who names the program. */
const STARTERS: Readonly<Record<string, string>> = {
  "libs/sandbox/src/": "Hone: its sandbox, and groups for programs of the gate",
  "libs/embedded/src/": "the operator: servers of the bus and the database",
  "libs/testing/src/": "tests",
  "apps/cli/src/commands/up.ts": "Hone: itself in the background",
  "services/trainer/src/fsdp/": "the operator: HONE_TRAINER_PYTHON",
  "services/dataset/src/files/parquet/parquet-rows.ts": "Hone: its own decoder",
  "scripts/": "developers",
};
/** Files that start what the gate has allowed. */
const GATED: readonly string[] = [
  "libs/agents/src/tools/mcp-tools.ts",
  "services/agent-rollout/src/domain/agents/outside/command-agent.ts",
];
/** The gate itself, and the sandbox's child process, which is sent the two modules of Pyodide. */
const COMPUTED_IMPORTS: readonly string[] = [
  "libs/config/src/gates/user-module.ts",
  "libs/sandbox/src/child.ts",
];
/** Uses a V8 context only to give synchronous work a deadline. */
const CONTEXTS: readonly string[] = ["libs/core/src/interrupt.ts"];

const STARTS_PROGRAMS = /"node:(child_process|cluster)"/;
const STARTS_GATED = /\b(StdioClientTransport|runProcessGroup)\b/;
const KNOWS_GATE = /\bgate\.program\(/;
const COMPUTED_IMPORT = /(?<![\w.#])import\(\s*(?!["\s])/;
const COMPUTED_REQUIRE = /createRequire\([^)]*\)\((?!")/;
const THREAD = /new Worker\((?!new URL\("\.\/[\w-]+\.ts", import\.meta\.url\))/;
const EVALUATES = /"node:vm"|\bnew Function\(|(?<![\w.#])eval\(/;

export function checkGates(workspace: Workspace): Problem[] {
  const files = [...workspace.packages.flatMap((each) => each.files), ...workspace.looseFiles];
  return files
    .filter(({ path }) => !isDevelopmentOnly(path) && !isGenerated(path) && !path.startsWith("examples/"))
    .flatMap(checkFile);
}

function checkFile({ path, text }: SourceFile): Problem[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g, (whole) => whole.replace(/[^\n]/g, " "));
  const found = (pattern: RegExp, message: string): Problem[] => {
    const match = pattern.exec(code);
    return match === null ? [] : [{ path, line: code.slice(0, match.index).split("\n").length, message }];
  };
  const isListed = (list: readonly string[]) => list.some((each) => path.startsWith(each));
  const problems: Problem[] = [];
  if (!isListed(Object.keys(STARTERS))) {
    problems.push(
      ...found(STARTS_PROGRAMS, "starts a program, and is not in the list of scripts/checks/gates.ts"),
    ); // P1
    if (!isListed(GATED)) {
      problems.push(
        ...found(
          STARTS_GATED,
          "starts a program of a user, and is not in the list of scripts/checks/gates.ts",
        ),
      ); // P1
    } else if (!KNOWS_GATE.test(code) && STARTS_GATED.test(code)) {
      problems.push(...found(STARTS_GATED, "starts a program without asking the gate")); // P2
    }
  }
  // P3
  if (path.startsWith("scripts/")) return problems;
  const message = "runs code whose name is computed, which only the gate may do (scripts/checks/gates.ts)";
  if (!isListed(COMPUTED_IMPORTS)) problems.push(...found(COMPUTED_IMPORT, message));
  problems.push(...found(COMPUTED_REQUIRE, message), ...found(THREAD, message));
  if (!isListed(CONTEXTS)) problems.push(...found(EVALUATES, message));
  return problems;
}
