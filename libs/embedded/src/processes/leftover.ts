/**
 * Ends a server that an earlier start left running on the same folder, as its parent and its watchdog were both killed or the
 * watchdog is still at work. Only a process whose command line names the folder is ended, so that another program that now has
 * the pid is not affected.
 */

import { DeadlineError, delay, type WaitOptions } from "@hone/core";
import { commandLineOf, identifyProcess, isRunning, sendSignal } from "./process-identity.ts";

export interface LeftoverOptions extends WaitOptions {
  /** Text that the command line must contain: the folder or file that the server was started with. */
  readonly commandContains: string;
  /** Sent one after the other, then SIGKILL. */
  readonly stopSignals: readonly NodeJS.Signals[];
  readonly graceMs: number;
}

const LOOK_EVERY_MS = 20;
/** How long the kernel may take to remove a killed process. */
const KILL_MS = 5_000;

/** @returns whether such a process existed. */
export async function endLeftover(pid: number, options: LeftoverOptions): Promise<boolean> {
  const identity = identifyProcess(pid);
  if (identity === undefined) return false;
  if (commandLineOf(pid)?.includes(options.commandContains) !== true) return false;
  const untilGone = async (ms: number) => {
    const until = performance.now() + ms;
    while (isRunning(identity) && performance.now() < until) {
      await delay(LOOK_EVERY_MS, { signal: options.signal });
    }
  };
  for (const signal of options.stopSignals) {
    if (isRunning(identity)) sendSignal(pid, signal);
    await untilGone(options.graceMs / options.stopSignals.length);
  }
  if (isRunning(identity)) sendSignal(pid, "SIGKILL");
  await untilGone(KILL_MS);
  if (isRunning(identity)) throw new DeadlineError(`the end of process ${pid}`, KILL_MS);
  return true;
}
