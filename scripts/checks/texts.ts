/**
 * What no file of the repository may contain.
 *
 * T1: file paths of one machine, which are wrong on every other.
 * T2: notes of what is left to do, which belong into an issue, and checks that are switched off.
 */

import { isGenerated, type Problem, type Workspace } from "./workspace.ts";

// Written in parts, so that this file does not hold what it looks for.
const MACHINE_FOLDERS = ["work", "root", "farm", "home/[a-z]\\w*", "Users/\\w+"];
const MACHINE_PATH = new RegExp(`(?<![\\w.:/-])/(${MACHINE_FOLDERS.join("|")})/\\S`);
const LEFT_OPEN = new RegExp(
  `\\b(${["TO" + "DO", "FIX" + "ME", "XX" + "X"].join("|")})\\b|@ts-${"ignore"}|@ts-${"expect-error"}`,
);

export function checkTexts(workspace: Workspace): Problem[] {
  return workspace.texts
    .filter(({ path }) => !isGenerated(path))
    .flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => {
        const problems: Problem[] = [];
        const machine = MACHINE_PATH.exec(line);
        if (machine !== null)
          problems.push({ path, line: index + 1, message: `names a path of one machine: ${machine[0]}…` }); // T1
        const open = LEFT_OPEN.exec(line);
        if (open !== null && path.endsWith(".ts")) {
          problems.push({ path, line: index + 1, message: `leaves something open: ${open[0]}` }); // T2
        }
        return problems;
      }),
    );
}
