/**
 * Starts the runtime of the sandbox: Deno without any permission.
 *
 * D1: it gets no permission at all and never prompts for one. Deno checks permissions outside JavaScript, so JavaScript code
 *     cannot reach any file, network, process, environment variable or library of the machine.
 * D2: it gets no environment, no open files but three pipes, its own process group, and no folder for caches or browser
 *     storage, where code could leave something for later code.
 * D3: the kernel limits its memory, including what the limits of WebAssembly and JavaScript's heap do not count. It cannot
 *     write files or core dumps.
 * D4: text cannot become JavaScript at run time: `Function` and `eval` refuse.
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
/** Memory of JavaScript, in addition to Python's. */
const HEAP_MEGABYTES = 192;
/** V8 adds this much for its young generation: the heap limit that it reports is this much above the configured one. */
const YOUNG_MEGABYTES = 96;
/**
 * D3: what the kernel counts as data beside Python's memory, in MiB. It counts every private writable mapping, used or not. With
 * 256 for Python the limit is 1,456 MiB. On two cores, a Python that has just started has 730, and one that uses all of its own
 * memory 950. Code that allocates empty JavaScript buffers until it fails reaches the limit, and its process aborts. Memory that
 * is used and not only reserved has a lower limit: resident memory is watched (python-process.ts).
 */
const DATA_MEBIBYTES = {
  /** The range of addresses that V8 reserves for compiled JavaScript. */
  codeRange: 512,
  /** JavaScript's heap, the old and the young generation. */
  heap: HEAP_MEGABYTES + YOUNG_MEGABYTES,
  /** What arrives on standard input, 13 of Pyodide and 30 of a snapshot, held by this program and again by V8 and Pyodide. */
  files: 88,
  /** 8 for each worker of V8, which has one per core, up to 16 cores; and 2 for each of two threads of Deno. */
  stacks: 16 * 8 + 2 * 2,
  /** Machine code of WebAssembly (17 at the start), memory of its compiler, malloc's reserve, and buffers of JavaScript. */
  others: 180,
};
const DATA_BYTES = Object.values(DATA_MEBIBYTES).reduce((sum, each) => sum + each, 0) * 1024 * 1024;
/** How often a file from standard input is held: by the child's program, and by V8 and Pyodide. */
export const FILE_COPIES = 2;
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
/** D3: limits of data in kilobytes, of core dumps, of the size of files, and of open files. */
const LIMITS = 'ulimit -d "$1" && ulimit -c 0 && ulimit -f 0 && ulimit -n 64 && shift && exec "$@"';

/** D2: a cache folder that cannot exist, no graphics card, and no check for a newer Deno. */
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
  /** Memory limit of Python. */
  readonly maxPythonBytes: number;
  /** Bytes of packages and of their part of a snapshot, which arrive on standard input with the other files. @default 0 */
  readonly packageBytes?: number;
  /** Whether the kernel's restrictions are applied too (kernel-launcher.ts). */
  readonly hasKernelWalls: boolean;
  /** Flags that grant permissions, for tests of the kernel's restrictions. @default none are granted */
  readonly permissions?: readonly string[];
}

/** @throws {SandboxMissingError} when there is no Deno for this machine. */
export function spawnDeno({
  program,
  maxPythonBytes,
  packageBytes = 0,
  hasKernelWalls,
  permissions,
}: DenoOptions): ChildProcess {
  const deno = findDeno();
  const own = permissions ?? ALL_PERMISSIONS.map((name) => `--deny-${name}`);
  const command = [deno, "run", ...FLAGS, ...own, entryOf(program)];
  const launcher = hasKernelWalls
    ? [deno, "run", ...FLAGS, "--allow-ffi", entryOf(readFileSync(LAUNCHER, "utf8"))]
    : [];
  const dataKilobytes = Math.ceil((maxPythonBytes + DATA_BYTES + FILE_COPIES * packageBytes) / 1024);
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
