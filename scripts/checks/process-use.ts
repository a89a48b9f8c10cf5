/**
 * Only main.ts and config.ts of a service touch `process`, and the entry files of child processes (…-main.ts).
 * Libraries touch it only where processes are their subject.
 */

import { isDevelopmentOnly, type Problem, type SourceFile, type Workspace } from "./workspace.ts";

/** Packages whose subject is the process itself: starting, ending and observing processes. */
const PROCESS_PACKAGES =
  /^(apps\/|scripts\/|test\/|examples\/|libs\/(embedded|sandbox|testing|service-kit)\/)/;
const PROCESS_FILE = /^services\/[^/]+\/src\/((main|config)|.*\/([\w-]+-main|memory-watch))\.ts$/;
const PROCESS_USE = /(?<![.\w"'`/-])process\.\w|from "node:process"/;

export function checkProcessUse(workspace: Workspace): Problem[] {
  return workspace.packages.flatMap((each) => each.files.flatMap(checkFile));
}

function checkFile(file: SourceFile): Problem[] {
  const isAllowed =
    PROCESS_PACKAGES.test(file.path) || PROCESS_FILE.test(file.path) || isDevelopmentOnly(file.path);
  if (isAllowed) return [];
  return file.text.split("\n").flatMap((text, index) => {
    const code = text.replace(/\/\/.*|^\s*\/?\*.*/, "");
    if (!PROCESS_USE.test(code)) return [];
    return [
      {
        path: file.path,
        line: index + 1,
        message: "only main.ts and config.ts of a service touch process: hand the value in",
      },
    ];
  });
}
