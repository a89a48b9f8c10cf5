/** Finds out, once, which of the kernel's restrictions this machine supports, by applying them to a probe. */

import type { ChildProcess } from "node:child_process";
import { deadline, describeError } from "@hone/core";
import { spawnDeno } from "../deno-process.ts";

export interface KernelWalls {
  /** Names, such as `Landlock 7`; empty = only Deno's permissions protect the machine. */
  readonly names: readonly string[];
  /** Why there are none. */
  readonly reason: string;
}

const PROBE = `(globalThis as unknown as { Deno: { stdout: { writeSync(bytes: Uint8Array): void } } }).Deno.stdout.writeSync(new TextEncoder().encode("stands"));`;
const PROBE_BYTES = 256 * 1024 * 1024;
const DEADLINE_MS = 30_000;
/** The line in which kernel-launcher.ts reports them. */
export const WALLS_LINE = /^walls: (.*)\n/m;

let found: Promise<KernelWalls> | undefined;

/** @throws {SandboxMissingError} when there is no Deno for this machine. */
export function kernelWalls(): Promise<KernelWalls> {
  found ??= probe().catch((error: unknown) => {
    found = undefined;
    throw error;
  });
  return found;
}

async function probe(): Promise<KernelWalls> {
  if (process.platform !== "linux") return { names: [], reason: "they are Linux's" };
  const child = spawnDeno({ program: PROBE, maxPythonBytes: PROBE_BYTES, hasKernelWalls: true });
  try {
    const { out, errors } = await deadline("the kernel's walls", DEADLINE_MS, () => outputOf(child));
    const names =
      WALLS_LINE.exec(errors)?.[1]
        ?.split(", ")
        .filter((name) => name !== "") ?? [];
    if (out === "stands") return { names, reason: names.length === 0 ? "the kernel has none of them" : "" };
    return { names: [], reason: errors.trim() || "the runtime did not start behind them" };
  } catch (error) {
    return { names: [], reason: describeError(error) };
  } finally {
    child.kill("SIGKILL");
  }
}

async function outputOf(child: ChildProcess): Promise<{ readonly out: string; readonly errors: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let out = "";
  let errors = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(0, 2_000);
  });
  child.stdin?.on("error", () => undefined).end();
  child.once("close", () => resolve());
  child.once("error", reject);
  await promise;
  return { out, errors };
}
