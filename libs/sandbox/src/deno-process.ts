/**
 * Starts the runtime of the sandbox: Deno, for code that may do nothing.
 *
 * D1: it gets no permission at all and asks nobody for one. Deno checks permissions outside of JavaScript, so that whatever
 *     JavaScript runs there reaches no file, network, process, environment or library of the machine.
 * D2: it gets no environment, no open file but three pipes, a process group of its own, and no folder for caches or what
 *     pages of a browser store, where code could leave something for the next.
 * D3: the kernel bounds its memory, also what WebAssembly and JavaScript's heap do not count; it writes no file and no core.
 * D4: no text becomes JavaScript there once it runs: `Function` and `eval` refuse.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { SandboxMissingError } from "./errors.ts";

const PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "@deno/linux-x64-glibc",
  "linux-arm64": "@deno/linux-arm64-glibc",
};
/** JavaScript's own memory beside Python's. */
const HEAP_MEGABYTES = 192;
/**
 * Deno counts this much as data when it has just started Python, most of it address space that it never uses; and what
 * JavaScript may have beside Python.
 */
const DATA_OVERHEAD_BYTES = 1_200 * 1024 * 1024;
const ALL_PERMISSIONS = ["read", "write", "net", "env", "sys", "run", "ffi", "import"];
const FLAGS = [
  "--no-prompt",
  "--no-remote",
  "--no-npm",
  "--no-config",
  "--no-lock",
  "--cached-only",
  "--no-code-cache",
  "--quiet",
  `--v8-flags=--max-old-space-size=${HEAP_MEGABYTES},--disallow-code-generation-from-strings`,
];
/** D3: kilobytes of data, core files, blocks of a file, open files. */
const LIMITS = 'ulimit -d "$1" && ulimit -c 0 && ulimit -f 0 && ulimit -n 64 && shift && exec "$@"';

/** D2: a place that cannot be; no graphics card, and no question whether there is a newer Deno. */
const ENVIRONMENT = {
  DENO_DIR: "/dev/null/none",
  DENO_WEBGPU_BACKEND: "none",
  DENO_NO_UPDATE_CHECK: "1",
  NO_COLOR: "1",
};
const LAUNCHER = path.join(import.meta.dirname, "kernel-launcher.ts");

export interface DenoOptions {
  /** JavaScript or TypeScript that imports nothing. */
  readonly program: string;
  /** What Python in it may use. */
  readonly maxPythonBytes: number;
  /** Whether the second wall is put up too (kernel-launcher.ts). */
  readonly hasKernelWalls: boolean;
  /** Instead of no permission: for tests of the second wall. */
  readonly permissions?: readonly string[];
}

/** @throws {SandboxMissingError} where there is no Deno. */
export function spawnDeno({
  program,
  maxPythonBytes,
  hasKernelWalls,
  permissions,
}: DenoOptions): ChildProcess {
  const deno = findDeno();
  const own = permissions ?? ALL_PERMISSIONS.map((name) => `--deny-${name}`);
  const command = [deno, "run", ...FLAGS, ...own, entryOf(program)];
  const launcher = hasKernelWalls
    ? [deno, "run", ...FLAGS, "--allow-ffi", entryOf(readFileSync(LAUNCHER, "utf8"))]
    : [];
  const dataKilobytes = Math.ceil((maxPythonBytes + DATA_OVERHEAD_BYTES) / 1024);
  return spawn("/bin/sh", ["-c", LIMITS, "hone", `${dataKilobytes}`, ...launcher, ...command], {
    cwd: "/",
    env: ENVIRONMENT,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
}

function entryOf(program: string): string {
  return `data:application/typescript;base64,${Buffer.from(program).toString("base64")}`;
}

/** @throws {SandboxMissingError} */
export function findDeno(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) throw new SandboxMissingError(`no Deno is packaged for ${platform}`);
  try {
    return path.join(path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "deno");
  } catch (cause) {
    throw new SandboxMissingError(`the package ${name} is not installed (it needs a Linux with glibc)`, {
      cause,
    });
  }
}
