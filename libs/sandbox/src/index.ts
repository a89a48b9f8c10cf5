/**
 * Untrusted Python in WebAssembly, in a runtime without any permission, with limits of time, memory and output; untrusted
 * commands in containers; and trusted commands in process groups that end as a whole.
 *
 * @example
 * const sandbox = new PythonSandbox();
 * const result = await sandbox.run("print(6 * 7)", { timeMs: 5_000, maxOutputBytes: 10_000 }, signal);
 */

export { type CommandEnd, type CommandOptions, Container } from "./containers/container.ts";
export { ContainerHost, type ContainerHostOptions, type HeldContainer } from "./containers/container-host.ts";
export type { ContainerSpec } from "./containers/container-spec.ts";
export type { CommandOutput } from "./containers/output-collector.ts";
export { defaultProcesses } from "./default-processes.ts";
export {
  ContainerRefusedError,
  ContainerRuntimeError,
  PackageError,
  SandboxClosedError,
  SandboxMissingError,
  SandboxUnavailableError,
} from "./errors.ts";
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
