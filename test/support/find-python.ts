/** A Python with a package, for tests of clients that are written in it. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { REPOSITORY } from "./stack.ts";

const CHECK_TIMEOUT_MS = 60_000;

/**
 * That of HONE_PYTHON, of the virtual environment in the repository, or of the system: the first that has the name to import.
 * @returns undefined when none has.
 */
export function findPython(module: string, name: string): string | undefined {
  const own = path.join(REPOSITORY, ".venv", "bin", "python");
  const candidates = [process.env.HONE_PYTHON, ...(existsSync(own) ? [own] : []), "python3"];
  return candidates.find((python) => {
    if (python === undefined || python === "") return false;
    // A folder of the module's name where the test runs is no package.
    const options = { cwd: tmpdir(), timeout: CHECK_TIMEOUT_MS };
    return spawnSync(python, ["-c", `from ${module} import ${name}`], options).status === 0;
  });
}
