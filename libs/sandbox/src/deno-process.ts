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
/** What V8 allows its young generation in addition: its heap limit, which it tells, is as much above the one it is given. */
const YOUNG_MEGABYTES = 96;
/**
 * D3: what the kernel counts as data beside Python's memory, in MiB. It counts every private mapping that can be written, used or not.
 * With Python's 256 the bound is 1,456 MiB. A Python that has just started has 730 on two cores; one that uses all of its own memory
 * 950; code that makes empty buffers of JavaScript until there is no room reaches the bound, and its process aborts. What is used, not
 * only reserved, is bounded sooner, by the watch on resident memory (python-process.ts).
 */
const DATA_MEBIBYTES = {
  /** The range of addresses that V8 takes for the code of JavaScript, all at once. */
  codeRange: 512,
  /** JavaScript's memory, old and young. */
  heap: HEAP_MEGABYTES + YOUNG_MEGABYTES,
  /** What comes on standard input, Pyodide's 13 and a snapshot's 30, in this program's hands and once more in V8's and Pyodide's. */
  files: 88,
  /** 8 for each worker of V8, which has one for each core: room for 16; two of Deno's own, with 2 each. */
  stacks: 16 * 8 + 2 * 2,
  /** Machine code of WebAssembly (17 at the start), what its compiler works with, what malloc holds ahead, buffers of JavaScript. */
  others: 180,
};
const DATA_BYTES = Object.values(DATA_MEBIBYTES).reduce((sum, each) => sum + each, 0) * 1024 * 1024;
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
const LAUNCHER = path.join(import.meta.dirname, "walls", "kernel-launcher.ts");

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
  const dataKilobytes = Math.ceil((maxPythonBytes + DATA_BYTES) / 1024);
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
