/**
 * Runs a command in its own process group, which ends as a whole.
 *
 * G1: the group ends when the command ends, when the signal aborts, and when this process dies for any reason: a shell that
 *     leads the group holds the reading end of a pipe, and kills the group when the writing end, which only this process has,
 *     is closed.
 * G2: the command gets only the environment that it is given, and nothing from this process's own; its input is empty.
 * G3: the last bytes of its output are kept.
 *
 * A process that leaves its group (setsid) is not followed.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";

export interface ProcessGroupOptions {
  /** Program and arguments; a program without a slash is looked up in the PATH of `environment`. */
  readonly command: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Aborting it ends the group. */
  readonly signal: AbortSignal;
  /** Number of bytes that are kept from the end of each output. */
  readonly maxTailBytes: number;
}

/** How the command ended. */
export type ProcessGroupEnd = (
  | { readonly kind: "exited"; readonly code: number }
  /** Ended by a signal, from another process or because the options' signal aborted. */
  | { readonly kind: "killed"; readonly signal: NodeJS.Signals }
  /** The program does not exist or cannot be run. */
  | { readonly kind: "not_started"; readonly reason: string }
) & { readonly stdout: string; readonly stderr: string };

/** G1. The command runs in the foreground, so that it gets the signals that a shell would hide from a background job. */
const LEADER = '( read -r _ <&3; kill -KILL 0 ) </dev/null >/dev/null 2>&1 &\n"$@" 3<&- </dev/null\nexit $?';
/** Exit codes of shells for a command that they could not start, and for one that a signal ended. */
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;
const SIGNAL_BASE = 128;
/** Longest wait until a killed group has closed its output. */
const CLOSE_DEADLINE_MS = 2_000;

/** Runs the command to its end. Never rejects. */
export async function runProcessGroup(options: ProcessGroupOptions): Promise<ProcessGroupEnd> {
  const { command, folder, environment, signal, maxTailBytes } = options;
  const child = spawn("/bin/sh", ["-c", LEADER, "hone", ...command], {
    cwd: folder,
    env: { ...environment },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const stdout = new Tail(child.stdout, maxTailBytes);
  const stderr = new Tail(child.stderr, maxTailBytes);
  const kill = () => killGroup(child);
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    const end = await ended(child);
    kill(); // G1: ends processes that the command left behind.
    await closed(child);
    return { ...end, stdout: stdout.text, stderr: stderr.text };
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

type End =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: NodeJS.Signals }
  | { readonly kind: "not_started"; readonly reason: string };

function ended(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ kind: "not_started", reason: error.message }));
    child.once("exit", (code, signal) => resolve(endOf(code, signal)));
  });
}

function endOf(code: number | null, signal: NodeJS.Signals | null): End {
  if (code === null) return { kind: "killed", signal: signal ?? "SIGKILL" };
  if (code === NOT_FOUND) return { kind: "not_started", reason: "no such program" };
  if (code === NOT_EXECUTABLE) return { kind: "not_started", reason: "a file that cannot be run" };
  const name = Object.entries(constants.signals).find(([, number]) => number === code - SIGNAL_BASE)?.[0];
  return name === undefined ? { kind: "exited", code } : { kind: "killed", signal: name as NodeJS.Signals };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // No process of the group is left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** Resolves when all output is read. */
function closed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, CLOSE_DEADLINE_MS);
    const streams = [child.stdout, child.stderr].filter((stream) => stream !== null && !stream.readableEnded);
    let numOpen = streams.length;
    const onClose = () => {
      if (--numOpen > 0) return;
      clearTimeout(timer);
      resolve();
    };
    if (numOpen === 0) {
      numOpen = 1;
      onClose();
    }
    for (const stream of streams) stream?.once("close", onClose);
  });
}

/** The last bytes of a stream (G3). */
class Tail {
  readonly #maxBytes: number;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(stream: Readable | null, maxBytes: number) {
    this.#maxBytes = maxBytes;
    stream?.on("data", (chunk: Buffer) => {
      const all = Buffer.concat([this.#bytes, chunk]);
      this.#bytes = all.length > maxBytes ? all.subarray(all.length - maxBytes) : all;
    });
    // A broken pipe needs no handling: the process ends as well.
    stream?.on("error", () => undefined);
  }

  get text(): string {
    const text = this.#bytes.toString("utf8");
    // The cut may have split a character.
    return this.#bytes.length < this.#maxBytes ? text : text.replace(/^\uFFFD+/, "");
  }
}
