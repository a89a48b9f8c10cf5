/** `node scripts/check-boundaries.ts`: the rules of the tree, each a file in scripts/checks/. Part of `npm run verify`. */

import { join } from "node:path";
import { checkAnswers } from "./checks/answers.ts";
import { checkChains } from "./checks/chains.ts";
import { checkGates } from "./checks/gates.ts";
import { readImportGraph } from "./checks/import-graph.ts";
import { IMPORT_RULES } from "./checks/import-rules.ts";
import { checkLayout } from "./checks/layout.ts";
import { checkLockFile } from "./checks/lock-file.ts";
import { checkPackages } from "./checks/packages.ts";
import { checkProcessUse } from "./checks/process-use.ts";
import { checkSizes } from "./checks/sizes.ts";
import { checkTexts } from "./checks/texts.ts";
import { type Problem, readWorkspace } from "./checks/workspace.ts";

const root = join(import.meta.dirname, "..");
const workspace = readWorkspace(root);
const graph = await readImportGraph(root, IMPORT_RULES);
const found: Readonly<Record<string, readonly Problem[]>> = {
  imports: graph.problems,
  packages: checkPackages(workspace, graph),
  chains: checkChains(graph),
  process: checkProcessUse(workspace),
  gates: checkGates(workspace),
  answers: checkAnswers(workspace),
  layout: checkLayout(workspace),
  sizes: checkSizes(workspace),
  texts: checkTexts(workspace),
  "lock file": checkLockFile(workspace),
};

let numProblems = 0;
for (const [name, problems] of Object.entries(found)) {
  for (const { path, line, message } of problems) {
    numProblems++;
    console.log(`${name}: ${line === undefined ? path : `${path}:${line}`} ${message}`);
  }
}
console.log(`${numProblems} problems in ${workspace.packages.length} packages, ${graph.imports.size} files`);
process.exitCode = numProblems === 0 ? 0 : 1;
