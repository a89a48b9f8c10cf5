/** For tests only: opens a file of rows as a run does, takes one batch, and prints as JSON what that cost. */

import { readFileSync } from "node:fs";
import { BoundKeys } from "@hone/config";
import { silentLogger } from "@hone/telemetry";
import { decodeSource } from "../../nats/decode-source.ts";
import { RowFiles } from "../row-files.ts";
import { openSource } from "../sources/open-source.ts";
import { offlineHub } from "./offline-hub.ts";

/** What this program prints. */
export interface RowsCost {
  readonly size: number;
  readonly cpuMs: number;
  /** Largest resident set of the process. */
  readonly peakBytes: number;
  /** Ids of the batch's tasks. */
  readonly taken: readonly string[];
}

const [root = "", cacheFolder = "", path = ""] = process.argv.slice(2);
const files = new RowFiles({ root, cacheFolder, logger: silentLogger() });
const before = process.cpuUsage();
const order = await openSource(decodeSource({ source: "jsonl", path }), {
  files,
  hub: offlineHub({ root }),
  keys: BoundKeys.none,
});
const tasks = await order.take({ runSeed: 1, cursor: 0, count: 256, isShuffled: true });
const { user, system } = process.cpuUsage(before);
// Linux resets this peak when a program starts; that of getrusage() includes the parent's.
const peakKib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
const cost: RowsCost = {
  size: order.size,
  cpuMs: (user + system) / 1_000,
  peakBytes: Number(peakKib) * 1_024,
  taken: tasks.map(({ id }) => id),
};
console.log(JSON.stringify(cost));
