/** Finds and runs Python, for tests that read with its packages what a sink wrote. */

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

/** The first import of mlflow on a busy machine takes half a minute. */
const CHECK_TIMEOUT_MS = 120_000;

/**
 * Tries HONE_PYTHON, the virtual environment in the repository and the system's Python.
 * @returns the first one that can import all of the modules; undefined if there is none.
 */
export function findPython(...modules: readonly string[]): string | undefined {
  const own = path.join(import.meta.dirname, "../../../../.venv/bin/python");
  const candidates = [process.env.HONE_PYTHON ?? "", ...(existsSync(own) ? [own] : []), "python3"];
  const options = { cwd: tmpdir(), timeout: CHECK_TIMEOUT_MS };
  return candidates.find(
    (each) => each !== "" && spawnSync(each, ["-c", `import ${modules.join(", ")}`], options).status === 0,
  );
}

/** The reason to skip a test for which {@link findPython} found nothing; false where it found one. */
export function skipWithout(python: string | undefined, packages: string): string | false {
  if (python !== undefined) return false;
  return `no Python has ${packages}: run \`pip install ${packages}\` in .venv, or set HONE_PYTHON to one that has them`;
}

/** Runs a program of Python. @returns the JSON that it prints. */
export function runPython(
  python: string,
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): unknown {
  const { status, stdout, stderr } = spawnSync(python, ["-c", program, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...environment },
    timeout: CHECK_TIMEOUT_MS,
    maxBuffer: 64 * 1024 ** 2,
  });
  if (status !== 0) throw new Error(`the Python program ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A port for a server that cannot choose one itself. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address === "object" && address !== null) return address.port;
  throw new Error("the server has no port");
}
