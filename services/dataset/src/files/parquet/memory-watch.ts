/**
 * A thread that kills its process when the process takes too much memory or when the parent process has ended.
 *
 * The main thread cannot do this: none of its timers runs while it decodes. V8's own limits do not help either, as they do
 * not count memory outside V8's heap, where the bytes of pages are.
 */

import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

/** A process can fill some hundred megabytes in this time. */
const CHECK_INTERVAL_MS = 20;

const { maxMemoryBytes, parent } = workerData as { readonly maxMemoryBytes: number; readonly parent: number };

setInterval(() => {
  const isTooLarge = process.memoryUsage.rss() > maxMemoryBytes;
  if (isTooLarge || process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, CHECK_INTERVAL_MS);
