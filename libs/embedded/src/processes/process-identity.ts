/**
 * Identifies processes by pid and start time.
 *
 * Pids are reused, so a stored pid is only trusted together with the start time of its process. The watchdog imports this
 * file, so it must import nothing but Node's own modules.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Identifies a process uniquely: no later process has the same pid and the same start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** An opaque text; on Linux the boot id and the clock tick of the start. */
  readonly startedAt: string;
}

/** @returns undefined when no process (or only a zombie) has this pid. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  const startedAt = process.platform === "linux" ? linuxStart(pid) : psField(pid, "lstart");
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const found = identifyProcess(identity.pid);
  return found !== undefined && found.startedAt === identity.startedAt;
}

/** The command line of a process, arguments joined by spaces; undefined when there is none. */
export function commandLineOf(pid: number): string | undefined {
  if (identifyProcess(pid) === undefined) return undefined;
  if (process.platform !== "linux") return psField(pid, "command");
  const text = readIfThere(`/proc/${pid}/cmdline`);
  return text?.split("\0").join(" ").trim();
}

/**
 * Sends a signal to a process, or with a negative pid to a group.
 * @returns false if there is none that this process may signal (macOS reports EPERM for a group of zombies).
 */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (isErrno(error, "ESRCH") || isErrno(error, "EPERM")) return false;
    throw error;
  }
}

/** Whether a caught value is the system error of this name, such as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function linuxStart(pid: number): string | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the name in brackets, which may contain spaces and brackets, so fields are counted after the last one.
  // There the state is the first field, and the start time (in clock ticks since boot) the twentieth.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isDead = fields[0] === "Z" || fields[0] === "X";
  if (isDead || fields[19] === undefined) return undefined;
  return `${readIfThere("/proc/sys/kernel/random/boot_id")?.trim() ?? ""}/${fields[19]}`;
}

function psField(pid: number, field: "lstart" | "command"): string | undefined {
  try {
    const text = execFileSync("ps", ["-o", `${field}=`, "-p", String(pid)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 5_000,
    }).trim();
    return text === "" ? undefined : text;
  } catch {
    // `ps` exits with 1 when there is no such process.
    return undefined;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // ESRCH: the process ended between opening and reading its file.
    if (isErrno(error, "ENOENT") || isErrno(error, "ESRCH")) return undefined;
    throw error;
  }
}
