/**
 * Child processes: untrusted Python in WebAssembly, in a runtime without any permission, with limits of time, memory and
 * output; and trusted commands in process groups that end as a whole.
 *
 * @example
 * const sandbox = new PythonSandbox();
 * const result = await sandbox.run("print(6 * 7)", { timeMs: 5_000, maxOutputBytes: 10_000 }, signal);
 */

export { defaultProcesses } from "./default-processes.ts";
export { PackageError, SandboxClosedError, SandboxMissingError, SandboxUnavailableError } from "./errors.ts";
export { PackageFolder, type WantedPackage } from "./packages/package-folder.ts";
export { type Wheel, WheelSet } from "./packages/wheel-set.ts";
export type { ProcessGroupEnd, ProcessGroupOptions } from "./process-group.ts";
export { runProcessGroup } from "./process-group.ts";
export type { RunLimits, RunResult } from "./python-process.ts";
export type { AroundWait, PythonSandboxOptions, PythonSession } from "./python-sandbox.ts";
export { PythonSandbox } from "./python-sandbox.ts";
export { ownSnapshots, Snapshots } from "./snapshot/snapshots.ts";
export type { KernelWalls } from "./walls/kernel-walls.ts";
export { kernelWalls } from "./walls/kernel-walls.ts";
