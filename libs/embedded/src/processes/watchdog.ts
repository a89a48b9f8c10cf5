/**
 * The parent's side of the watchdog (watchdog-main.ts): one per process, started with the first child.
 *
 * Every child started by {@link file://./child-process.ts} is on its list from its start to its exit, so that all children end
 * with this process, however it ends. If the watchdog itself is killed, it is started again with the list.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Ward, WatchdogLine } from "./watchdog-main.ts";

const MAIN = fileURLToPath(new URL("./watchdog-main.ts", import.meta.url));

const wards = new Map<number, Ward>();
let running: ChildProcess | undefined;

/** Puts a process on the list. It must lead its own process group. */
export function watch(ward: Ward): void {
  wards.set(ward.pid, ward);
  if (running === undefined) start();
  else tell({ kind: "watch", ward });
}

/** Takes a process off the list, once it has ended. */
export function forget(pid: number): void {
  if (wards.delete(pid)) tell({ kind: "forget", pid });
}

/** The watchdog's pid while it runs; for tests and for `hone doctor`. */
export function watchdogPid(): number | undefined {
  return running?.pid;
}

function start(): void {
  const child = spawn(process.execPath, [MAIN], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    // The watchdog must not inherit debugger and loader flags of the parent.
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  running = child;
  // It must neither keep this process alive nor make it fail; its death is handled on `exit`.
  child.unref();
  child.stdin.on("error", () => undefined);
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  const onEnd = () => {
    if (running !== child) return;
    running = undefined;
    if (wards.size > 0) start();
  };
  child.once("exit", onEnd);
  child.once("error", onEnd);
  for (const ward of wards.values()) tell({ kind: "watch", ward });
}

function tell(line: WatchdogLine): void {
  running?.stdin?.write(`${JSON.stringify(line)}\n`);
}
