/** Stopping a process of a stack for a while, with all below it, as a debugger or a starved machine does. */

import { readdirSync, readFileSync } from "node:fs";
import type { TestStack } from "./stack.ts";

/** A process that stands still until the scope ends. */
export interface StoppedProcess extends Disposable {
  /** Lets it go on; a second call does nothing. */
  goOn(): void;
}

/** @param name a service, "nats-server" or "postgres". */
export function stopProcess(stack: TestStack, name: string): StoppedProcess {
  const root = stack.pidOf(name);
  // The root first: what stands still starts no further children.
  process.kill(root, "SIGSTOP");
  const stopped = [root, ...childrenOf(root)];
  for (const pid of stopped.slice(1)) process.kill(pid, "SIGSTOP");
  let isOver = false;
  const goOn = () => {
    if (isOver) return;
    isOver = true;
    for (const pid of stopped.toReversed()) process.kill(pid, "SIGCONT");
  };
  return { goOn, [Symbol.dispose]: goOn };
}

/** Direct children: PostgreSQL serves each connection by one. */
export function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

/** The command line of a process, its words apart by NUL; empty for one that ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Undefined for a process that ended meanwhile. */
function parentOf(pid: number): number | undefined {
  try {
    // The name, in brackets, may hold spaces; state and parent follow it.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return Number(parent);
  } catch {
    return undefined;
  }
}
