/** Describes the machine, and checks whether other processes use it. */

import { readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { delay } from "@hone/core";
import { findNatsServer } from "@hone/embedded";
import { REPOSITORY } from "../repository.ts";

const LOOK_MS = 1_000;
/** Share of the processors that a quiet machine uses at most. */
const BUSY_SHARE = 0.1;
/** Load average per core of a quiet machine. It covers the last minute, so programs that ended just before still count. */
const BUSY_LOAD_SHARE = 0.5;

/** @returns CPU, memory and versions in one line. */
export async function describeMachine(cacheFolder: string): Promise<string> {
  const cpus = os.cpus();
  const onnxruntime = path.join(REPOSITORY, "node_modules", "onnxruntime-node", "package.json");
  const { version } = JSON.parse(readFileSync(onnxruntime, "utf8")) as { version: string };
  const nats = await findNatsServer({ fallbackCacheDir: cacheFolder });
  return [
    `${cpus[0]?.model.trim() ?? "unknown CPU"}, ${cpus.length} cores`,
    `${Math.round(os.totalmem() / 2 ** 30)} GiB`,
    `${os.type()} ${os.release()}`,
    `Node ${process.versions.node}`,
    `onnxruntime ${version}`,
    `nats-server ${nats.version}`,
  ].join("; ");
}

/** Measures for a second. @returns a description of other load; undefined on a quiet machine. */
export async function findOtherWork(): Promise<string | undefined> {
  const before = cpuTimes();
  await delay(LOOK_MS);
  const after = cpuTimes();
  const share = (after.busy - before.busy) / (after.busy + after.idle - before.busy - before.idle);
  const load = os.loadavg()[0] ?? 0;
  if (share <= BUSY_SHARE && load <= BUSY_LOAD_SHARE * os.cpus().length) return undefined;
  return `other processes use ${Math.round(share * 100)} % of the processors, load average ${load.toFixed(2)}`;
}

/** Milliseconds since the start of the machine, summed over its cores. */
function cpuTimes(): { busy: number; idle: number } {
  let busy = 0;
  let idle = 0;
  for (const { times } of os.cpus()) {
    busy += times.user + times.nice + times.sys + times.irq;
    idle += times.idle;
  }
  return { busy, idle };
}
