/**
 * One child process with a Python that has started, from the outside.
 *
 * E1: it ends when its time is over, its memory is used up, its signal aborts or it is told to: by SIGKILL, at once.
 * E2: what the code does to its process is a result of the run.
 */

import { type ChildProcess, fork } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { deadline, describeError } from "@hone/core";
import { SandboxUnavailableError } from "./errors.ts";
import type { FinishedRun, FromChild, ToChild } from "./protocol.ts";

/** Bounds of one run. */
export interface RunLimits {
  readonly timeMs: number;
  readonly maxOutputBytes: number;
}

/** What came of a run. */
export type RunResult =
  | ({ readonly kind: "finished" } & FinishedRun)
  | { readonly kind: "timed_out" }
  | { readonly kind: "out_of_memory" }
  /** The process ended under it. */
  | { readonly kind: "crashed"; readonly reason: string; readonly isBySignal: boolean };

const CHILD = path.join(import.meta.dirname, "child.ts");
const PACKAGE = path.join(import.meta.dirname, "..", "package.json");
const PYODIDE = path.dirname(createRequire(import.meta.url).resolve("pyodide"));
const START_DEADLINE_MS = 60_000;
/** JavaScript's own memory beside Python's. */
const HEAP_MEGABYTES = 192;
/** Code, and Node itself, beside both. */
const OVERHEAD_BYTES = 320 * 1024 * 1024;
const WATCH_INTERVAL_MS = 200;

export class PythonProcess {
  readonly #child: ChildProcess;
  readonly #maxMemoryBytes: number;

  private constructor(child: ChildProcess, maxMemoryBytes: number) {
    this.#child = child;
    this.#maxMemoryBytes = maxMemoryBytes;
  }

  /** Memory of a Python that has just started: others start from it in a tenth of the time. @throws as {@link start}. */
  static async snapshot(): Promise<Uint8Array> {
    const child = spawnChild();
    try {
      const message = await firstMessage(child, {
        snapshot: undefined,
        maxMemoryBytes: Number.MAX_SAFE_INTEGER,
      });
      if (message.kind === "snapshot") return message.snapshot;
      throw new SandboxUnavailableError("a child must send a snapshot", message.kind);
    } finally {
      child.kill("SIGKILL");
    }
  }

  /** @throws {SandboxUnavailableError} when the process does not come up. */
  static async start(snapshot: Uint8Array, maxMemoryBytes: number): Promise<PythonProcess> {
    const child = spawnChild();
    try {
      await firstMessage(child, { snapshot, maxMemoryBytes });
      return new PythonProcess(child, maxMemoryBytes);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /**
   * Runs code to its end or to that of the process.
   * @throws the signal's reason when it aborts; the process is gone then.
   */
  async run(code: string, limits: RunLimits, signal: AbortSignal): Promise<RunResult> {
    const child = this.#child;
    const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
    const onMessage = (message: FromChild) => {
      if (message.kind === "done") resolve({ kind: "finished", ...message.result });
    };
    const onExit = (exitCode: number | null, exitSignal: string | null) =>
      resolve({
        kind: "crashed",
        reason: exitSignal ?? `exit code ${exitCode}`,
        isBySignal: exitSignal !== null,
      });
    const onAbort = () => reject(signal.reason);
    const timer = setTimeout(() => resolve({ kind: "timed_out" }), limits.timeMs);
    const watch = setInterval(async () => {
      if ((await residentBytes(child.pid)) > this.#maxMemoryBytes + OVERHEAD_BYTES) {
        resolve({ kind: "out_of_memory" });
      }
    }, WATCH_INTERVAL_MS);
    child.on("message", onMessage);
    child.once("exit", onExit);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      signal.throwIfAborted();
      if (!this.isAlive) return { kind: "crashed", reason: "gone before it ran", isBySignal: true };
      send(child, { kind: "run", code, maxOutputBytes: limits.maxOutputBytes });
      const result = await promise;
      if (result.kind !== "finished") this.end(); // E1
      return result;
    } catch (error) {
      this.end();
      throw error;
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
      child.off("message", onMessage);
      child.off("exit", onExit);
      signal.removeEventListener("abort", onAbort);
    }
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

function spawnChild(): ChildProcess {
  const child = fork(CHILD, [], {
    execArgv: [
      "--permission",
      ...[CHILD, path.join(import.meta.dirname, "protocol.ts"), PACKAGE, PYODIDE].map(
        (file) => `--allow-fs-read=${file}`,
      ),
      `--max-old-space-size=${HEAP_MEGABYTES}`,
      "--disable-warning=ExperimentalWarning",
    ],
    env: {},
    serialization: "advanced",
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  // A process that waits for code holds nobody up.
  child.unref();
  child.channel?.unref();
  return child;
}

async function firstMessage(
  child: ChildProcess,
  start: Omit<Extract<ToChild, { kind: "start" }>, "kind">,
): Promise<FromChild> {
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-2_000);
  });
  try {
    return await deadline("a process of the sandbox", START_DEADLINE_MS, async () => {
      const { promise, resolve, reject } = Promise.withResolvers<FromChild>();
      child.once("message", resolve);
      child.once("exit", (code, signal) =>
        reject(new Error(`it ended with ${signal ?? code}: ${complaint}`)),
      );
      child.once("error", reject);
      child.ref();
      child.channel?.ref();
      send(child, { kind: "start", ...start });
      return promise;
    });
  } catch (cause) {
    throw new SandboxUnavailableError("a process of the sandbox must start", describeError(cause), { cause });
  } finally {
    child.unref();
    child.channel?.unref();
  }
}

function send(child: ChildProcess, message: ToChild): void {
  // A channel that breaks is seen by the end of the process.
  child.send(message, () => undefined);
}

/** Where the system does not tell, Python's own bound is the only one. */
async function residentBytes(pid: number | undefined): Promise<number> {
  try {
    const [, pages] = (await readFile(`/proc/${pid}/statm`, "utf8")).split(" ");
    return Number(pages) * 4_096;
  } catch {
    return 0;
  }
}
