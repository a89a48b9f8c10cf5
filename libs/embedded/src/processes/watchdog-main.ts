/**
 * The watchdog: a separate process that ends its parent's children when the parent has ended.
 *
 * It reads lines of JSON from its standard input, a pipe that only the parent holds. When the parent ends in any way,
 * including SIGKILL, the pipe ends too, and the watchdog ends every process that is still on its list.
 *
 * W1: highest stage first (services before the bus and the database that they need), one stage after the other.
 * W2: a process is signalled only if it is still the one that was listed (pid and start time).
 * W3: its waits have a time limit: signals, then the grace time, then SIGKILL to the process group.
 *
 * Run as `node watchdog-main.ts`; {@link file://./watchdog.ts} starts it.
 */

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, type ProcessIdentity, sendSignal } from "./process-identity.ts";

/** One process to end when the parent is gone. */
export interface Ward extends ProcessIdentity {
  /** Higher stages are ended first (W1). */
  readonly stage: number;
  /** Sent one after the other, each followed by its share of the grace time; then SIGKILL. */
  readonly stopSignals: readonly NodeJS.Signals[];
  readonly graceMs: number;
}

/** Parent -> watchdog, one JSON text per line. */
export type WatchdogLine =
  | { readonly kind: "watch"; readonly ward: Ward }
  | { readonly kind: "forget"; readonly pid: number };

// How often a process that must end is checked; short compared to any grace time.
const LOOK_EVERY_MS = 20;

if (import.meta.main) {
  // The watchdog must survive signals that end its parent, such as those of a closed terminal or Ctrl-C.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  const wards = new Map<number, Ward>();
  for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line) as WatchdogLine;
    if (message.kind === "watch") wards.set(message.ward.pid, message.ward);
    else wards.delete(message.pid);
  }
  await endAll([...wards.values()]);
}

/** Ends the listed processes, stage by stage (W1). */
export async function endAll(wards: readonly Ward[]): Promise<void> {
  const stages = [...new Set(wards.map((ward) => ward.stage))].sort((a, b) => b - a);
  for (const stage of stages) {
    await Promise.all(wards.filter((ward) => ward.stage === stage).map(endOne));
  }
}

async function endOne(ward: Ward): Promise<void> {
  for (const signal of ward.stopSignals) {
    if (!isRunning(ward)) break; // W2
    sendSignal(ward.pid, signal);
    await untilGone(ward, ward.graceMs / ward.stopSignals.length);
  }
  if (isRunning(ward)) sendSignal(-ward.pid, "SIGKILL"); // W3
}

async function untilGone(ward: Ward, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  while (isRunning(ward) && performance.now() < until) await sleep(LOOK_EVERY_MS);
}
