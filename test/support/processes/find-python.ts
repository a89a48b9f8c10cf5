/** Finds a Python that has a package, for tests of clients in Python. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { REPOSITORY } from "../stack.ts";

const CHECK_TIMEOUT_MS = 60_000;

/**
 * Tries HONE_PYTHON, the virtual environment in the repository and the system's Python.
 * @returns the first one from which `name` can be imported from `module`; undefined if there is none.
 */
export function findPython(module: string, name: string): string | undefined {
  const own = path.join(REPOSITORY, ".venv", "bin", "python");
  const candidates = [process.env.HONE_PYTHON, ...(existsSync(own) ? [own] : []), "python3"];
  return candidates.find((python) => {
    if (python === undefined || python === "") return false;
    // Runs elsewhere, so that a folder of the module's name in the current folder is not taken for the package.
    const options = { cwd: tmpdir(), timeout: CHECK_TIMEOUT_MS };
    return spawnSync(python, ["-c", `from ${module} import ${name}`], options).status === 0;
  });
}
