/** Stops a process of a stack and its children for a while, as a debugger or an overloaded machine does. */

import { readdirSync, readFileSync } from "node:fs";
import type { TestStack } from "../stack.ts";

/** A process that is stopped until the scope ends. */
export interface StoppedProcess extends Disposable {
  /** Continues the process; a second call does nothing. */
  continue(): void;
}

/** @param name a service, "nats-server" or "postgres". */
export function stopProcess(stack: TestStack, name: string): StoppedProcess {
  const root = stack.pidOf(name);
  // The root is stopped first, so that it starts no further children.
  process.kill(root, "SIGSTOP");
  const stopped = [root, ...childrenOf(root)];
  for (const pid of stopped.slice(1)) process.kill(pid, "SIGSTOP");
  let isOver = false;
  const continueAll = () => {
    if (isOver) return;
    isOver = true;
    for (const pid of stopped.toReversed()) process.kill(pid, "SIGCONT");
  };
  return { continue: continueAll, [Symbol.dispose]: continueAll };
}

/** Direct children of a process; PostgreSQL has one for each connection. */
export function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

/** The command line of a process, with its words separated by NUL; empty if the process has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** The parent of a process; undefined if the process has ended. */
function parentOf(pid: number): number | undefined {
  try {
    // The name, in brackets, may hold spaces; state and parent follow it.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return Number(parent);
  } catch {
    return undefined;
  }
}
