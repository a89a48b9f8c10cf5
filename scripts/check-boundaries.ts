/** `node scripts/check-boundaries.ts`: the rules of the tree, each a file in scripts/checks/. Part of `npm run verify`. */

import { join } from "node:path";
import { checkAnswers } from "./checks/answers.ts";
import { checkCycles } from "./checks/cycles.ts";
import { checkDependencies } from "./checks/dependencies.ts";
import { checkGates } from "./checks/gates.ts";
import { checkLayers } from "./checks/layers.ts";
import { checkLayout } from "./checks/layout.ts";
import { checkLockFile } from "./checks/lock-file.ts";
import { checkServices } from "./checks/services.ts";
import { checkTexts } from "./checks/texts.ts";
import { type Rule, readWorkspace } from "./checks/workspace.ts";

const RULES: Readonly<Record<string, Rule>> = {
  layers: checkLayers,
  dependencies: checkDependencies,
  cycles: checkCycles,
  services: checkServices,
  gates: checkGates,
  answers: checkAnswers,
  layout: checkLayout,
  texts: checkTexts,
  "lock file": checkLockFile,
};

const workspace = readWorkspace(join(import.meta.dirname, ".."));
let numProblems = 0;
for (const [name, rule] of Object.entries(RULES)) {
  for (const problem of rule(workspace)) {
    numProblems++;
    const place = problem.line === undefined ? problem.path : `${problem.path}:${problem.line}`;
    console.log(`${name}: ${place} ${problem.message}`);
  }
}
const numFiles = workspace.packages.reduce(
  (sum, each) => sum + each.files.length,
  workspace.looseFiles.length,
);
console.log(`${numProblems} problems in ${workspace.packages.length} packages, ${numFiles} files`);
process.exitCode = numProblems === 0 ? 0 : 1;
