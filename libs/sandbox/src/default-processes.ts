/** How many processes of the sandbox a machine bears. */

import { availableParallelism, totalmem } from "node:os";

/** One that runs, and one that is started ahead. */
const MIN_PROCESSES = 2;
const MAX_PROCESSES = 256;
/** Python's memory and all beside it, where code makes the most of it: half of what there is serves for that. */
const BYTES_PER_PROCESS = 576 * 1024 * 1024;
const SHARE_OF_MEMORY = 0.5;

/** As many as cores that this process may use, and no more than memory bears; a container's own bounds count. */
export function defaultProcesses(): number {
  const limit = process.constrainedMemory();
  const memory = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const fitting = Math.floor((memory * SHARE_OF_MEMORY) / BYTES_PER_PROCESS);
  return Math.min(MAX_PROCESSES, Math.max(MIN_PROCESSES, Math.min(availableParallelism(), fitting)));
}
