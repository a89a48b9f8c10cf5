/** The default number of sandbox processes on a machine. */

import { availableParallelism, totalmem } from "node:os";

/** One that runs code and one that is started ahead. */
const MIN_PROCESSES = 2;
const MAX_PROCESSES = 256;
/** Most memory of one process: Python's and everything beside it. Half of the machine's memory may be used by processes. */
const BYTES_PER_PROCESS = 576 * 1024 * 1024;
const SHARE_OF_MEMORY = 0.5;

/** One process per available core, limited by memory; the limits of a container count. */
export function defaultProcesses(): number {
  const limit = process.constrainedMemory();
  const memory = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const fitting = Math.floor((memory * SHARE_OF_MEMORY) / BYTES_PER_PROCESS);
  return Math.min(MAX_PROCESSES, Math.max(MIN_PROCESSES, Math.min(availableParallelism(), fitting)));
}
