/**
 * A child process that is always ended.
 *
 * C1: each child leads its own session and group, so that a terminal's Ctrl-C reaches only this process, which then ends its
 *     children in order.
 * C2: a child is on the watchdog's list from its start to its exit.
 * C3: `stop` is idempotent and has a time limit: it sends the signals one after the other within the grace time, then SIGKILL
 *     to the whole group. When it is called again, the shorter grace time counts.
 * C4: when a child exits, the other processes in its group are killed.
 */

import { spawn } from "node:child_process";
import { closeSync, fchmodSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DeadlineError, deadline, delay, type WaitOptions } from "@hone/core";
import { StartError } from "../errors.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../private-files.ts";
import { identifyProcess, isErrno, type ProcessIdentity, sendSignal } from "./process-identity.ts";
import { forget, watch } from "./watchdog.ts";

/** How a child ended. Exactly one of the two is not null. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How long a child may take to end by itself. */
export interface StopOptions {
  /** Milliseconds between the first signal and SIGKILL. */
  readonly graceMs?: number;
}

/** The account that a child runs as, if it is not this process's own. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface ChildOptions {
  /** Short name for messages, such as `nats-server`. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment. @default this process's */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly account?: Account | undefined;
  /** Standard output and error are appended to this file. */
  readonly logFile: string;
  /** Sent one after the other by `stop`, before SIGKILL. @default SIGTERM */
  readonly stopSignals?: readonly NodeJS.Signals[];
  /** Grace time of the watchdog, and the default of `stop`. @default 10_000 */
  readonly graceMs?: number;
  /** The watchdog ends higher stages first. @default 0 */
  readonly stage?: number;
}

/** A running (or ended) child process. */
export interface Child extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  readonly identity: ProcessIdentity;
  readonly logFile: string;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<ChildExit>;
  /** Ends the process (C3). */
  stop(options?: StopOptions): Promise<ChildExit>;
}

/** Services drain within this time, as service-kit requires. */
const DEFAULT_GRACE_MS = 10_000;
/** A larger log is renamed when its process starts again. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;
/** How long the kernel may take to report a killed process. */
const KILL_REPORT_MS = 5_000;
const TAIL_LINES = 15;
const FIRST_LOOK_MS = 10;
const LAST_LOOK_MS = 200;

/**
 * Starts a child process.
 * @throws {StartError} when the program cannot be executed.
 */
export async function spawnChild(options: ChildOptions): Promise<Child> {
  const { name, stopSignals = ["SIGTERM"], graceMs: defaultGraceMs = DEFAULT_GRACE_MS, stage = 0 } = options;
  const log = openLog(options.logFile);
  const spawned = spawn(options.command, options.args, {
    detached: true, // C1
    stdio: ["ignore", log, log],
    env: options.env ?? process.env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...options.account,
  });
  closeSync(log);
  await new Promise<void>((resolve, reject) => {
    spawned.once("spawn", resolve);
    spawned.once("error", (cause) =>
      reject(
        new StartError(
          name,
          `Cannot start ${name}: the program ${options.command} does not exist or is not executable`,
          "",
          { cause },
        ),
      ),
    );
  });
  const pid = spawned.pid as number;
  // A process that has already ended is a zombie until Node reaps it, and has no identity.
  const identity = identifyProcess(pid) ?? { pid, startedAt: "" };
  watch({ ...identity, stage, stopSignals, graceMs: defaultGraceMs }); // C2

  const exited = new Promise<ChildExit>((resolve) => {
    const onExit = (code: number | null, signal: NodeJS.Signals | null) => {
      sendSignal(-pid, "SIGKILL"); // C4
      forget(pid);
      resolve({ code, signal });
    };
    if (spawned.exitCode !== null || spawned.signalCode !== null) {
      onExit(spawned.exitCode, spawned.signalCode);
    } else spawned.once("exit", onExit);
  });

  let stopping: Promise<ChildExit> | undefined;
  const stop = (stopOptions: StopOptions = {}): Promise<ChildExit> => {
    const graceMs = stopOptions.graceMs ?? defaultGraceMs;
    if (stopping === undefined) stopping = end(graceMs);
    else hurry(graceMs);
    return stopping;
  };
  /** A later call with less grace time ends the child sooner. */
  function hurry(graceMs: number): void {
    const timer = setTimeout(() => sendSignal(-pid, "SIGKILL"), graceMs);
    void exited.then(() => clearTimeout(timer));
  }
  async function end(graceMs: number): Promise<ChildExit> {
    for (const signal of stopSignals) {
      if (!sendSignal(pid, signal)) break;
      const exit = await within(exited, graceMs / stopSignals.length);
      if (exit !== undefined) return exit;
    }
    sendSignal(-pid, "SIGKILL");
    return deadline(`the end of ${name} (pid ${pid})`, KILL_REPORT_MS, () => exited);
  }

  return {
    name,
    pid,
    identity,
    logFile: options.logFile,
    exited,
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}

export interface ReadyOptions extends WaitOptions {
  readonly deadlineMs: number;
}

/**
 * Repeats `check` until it returns a value, and ends the child if it never does.
 * @param check returns undefined or throws while the child is not ready; its last error becomes the cause of the failure.
 * @throws {StartError} when the child exits first or the deadline passes.
 * @throws the reason of the signal when it aborts first.
 */
export async function untilReady<T>(
  child: Child,
  check: (signal: AbortSignal) => Promise<T | undefined>,
  options: ReadyOptions,
): Promise<T> {
  let lastFailure: unknown;
  const looking = new AbortController();
  const look = async (signal: AbortSignal): Promise<T> => {
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 2)) {
      try {
        const value = await check(AbortSignal.any([signal, looking.signal]));
        if (value !== undefined) return value;
      } catch (error) {
        lastFailure = error;
      }
      await delay(pauseMs, { signal: AbortSignal.any([signal, looking.signal]) });
    }
  };
  try {
    const first = await Promise.race([
      deadline(`${child.name} to be ready`, options.deadlineMs, look, { signal: options.signal }).then(
        (value) => ({ kind: "ready", value }) as const,
      ),
      child.exited.then((exit) => ({ kind: "exited", exit }) as const),
    ]);
    if (first.kind === "ready") return first.value;
    throw new StartError(
      child.name,
      `Cannot start ${child.name}: it ended with ${describeExit(first.exit)} before it was ready`,
      logTail(child.logFile),
    );
  } catch (error) {
    await child.stop({ graceMs: 1_000 });
    if (!(error instanceof DeadlineError)) throw error;
    throw new StartError(
      child.name,
      `Cannot start ${child.name}: it was not ready within ${options.deadlineMs} ms`,
      logTail(child.logFile),
      { cause: lastFailure ?? error },
    );
  } finally {
    looking.abort();
  }
}

/** `exit code 1` or `signal SIGKILL`. */
export function describeExit(exit: ChildExit): string {
  return exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
}

/** @returns the last lines of a log; empty if there are none. */
export function logTail(logFile: string, lines = TAIL_LINES): string {
  try {
    return readFileSync(logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return "";
    throw error;
  }
}

function openLog(logFile: string): number {
  mkdirSync(dirname(logFile), { recursive: true, mode: PRIVATE_FOLDER });
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > MAX_LOG_BYTES) renameSync(logFile, `${logFile}.old`);
  const log = openSync(logFile, "a", PRIVATE_FILE);
  fchmodSync(log, PRIVATE_FILE); // corrects the mode of a log of an earlier version
  return log;
}

/** @returns undefined when the promise takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const timer = new AbortController();
  try {
    return await Promise.race([promise, delay(ms, { signal: timer.signal }).then(() => undefined)]);
  } finally {
    timer.abort();
  }
}
