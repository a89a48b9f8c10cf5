/**
 * Code that is named from outside passes the gate (libs/config/src/gates/code-gate.ts).
 *
 * Whatever can start a program or run code stands in a file of this list, with what names the program there. A new file that
 * starts one is found here, and has to say so: by taking an AllowedProgram or a UserModule of the gate where a run file, an
 * agent's file or a row names it, or by a line of its own where it is the operator's or Hone's.
 *
 * P1: starters of programs stand in the listed files only.
 * P2: what starts programs that are named from outside takes them from the gate: it knows the type AllowedProgram.
 * P3: modules whose name is computed are imported by the gate alone. Threads run files of the clone.
 */

import {
  isDevelopmentOnly,
  isGenerated,
  type Problem,
  type SourceFile,
  type Workspace,
} from "./workspace.ts";

/** Path, or its begin -> what names the program. */
const STARTERS: Readonly<Record<string, string>> = {
  "libs/sandbox/src/": "Hone: its sandbox, and groups for programs of the gate",
  "libs/embedded/src/": "the operator: servers of the bus and the database",
  "libs/testing/src/": "tests",
  "apps/cli/src/commands/up.ts": "Hone: itself in the background",
  "services/trainer/src/fsdp/": "the operator: HONE_TRAINER_PYTHON",
  "services/dataset/src/files/parquet/parquet-rows.ts": "Hone: its own decoder",
  "scripts/": "developers",
};
/** They start what the gate let through. */
const GATED: readonly string[] = [
  "libs/agents/src/tools/mcp-tools.ts",
  "services/agent-rollout/src/domain/agents/outside/command-agent.ts",
];
/** The gate's own import, and where the name is no user's: the sandbox's child, which is sent Pyodide's two modules. */
const COMPUTED_IMPORTS: readonly string[] = [
  "libs/config/src/gates/user-module.ts",
  "libs/sandbox/src/child.ts",
];
/** V8 contexts without code of their own: a deadline for synchronous work. */
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
    problems.push(...found(STARTS_PROGRAMS, "starts programs: see scripts/checks/gates.ts")); // P1
    if (!isListed(GATED)) {
      problems.push(...found(STARTS_GATED, "starts programs of users: see scripts/checks/gates.ts")); // P1
    } else if (!KNOWS_GATE.test(code) && STARTS_GATED.test(code)) {
      problems.push(...found(STARTS_GATED, "starts a program that did not pass the gate")); // P2
    }
  }
  // P3
  if (path.startsWith("scripts/")) return problems;
  const message = "runs code whose name is computed: see scripts/checks/gates.ts";
  if (!isListed(COMPUTED_IMPORTS)) problems.push(...found(COMPUTED_IMPORT, message));
  problems.push(...found(COMPUTED_REQUIRE, message), ...found(THREAD, message));
  if (!isListed(CONTEXTS)) problems.push(...found(EVALUATES, message));
  return problems;
}
