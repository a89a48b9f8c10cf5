/**
 * A thread that ends its process when that takes too much memory, or when its parent is gone.
 *
 * The process itself cannot: while it decodes, no timer of its own runs, and V8's limits do not count what lies outside its
 * heap, as the bytes of pages do.
 */

import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

/** A process fills some hundred megabytes in this time. */
const LOOK_EVERY_MS = 20;

const { maxMemoryBytes, parent } = workerData as { readonly maxMemoryBytes: number; readonly parent: number };

setInterval(() => {
  const isTooLarge = process.memoryUsage.rss() > maxMemoryBytes;
  if (isTooLarge || process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, LOOK_EVERY_MS);
