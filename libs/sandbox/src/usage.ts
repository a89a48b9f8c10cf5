/** What a process uses of the machine, where the system tells it. */

import { readFile } from "node:fs/promises";

export interface Usage {
  readonly residentBytes: number;
  readonly numThreads: number;
}

const PAGE_BYTES = 4_096;
/** Fields of /proc/PID/stat after the name of the program, which may hold anything. */
const NUM_THREADS = 17;
const RESIDENT_PAGES = 21;

/** @returns undefined for a process that is gone. */
export async function readUsage(pid: number | undefined): Promise<Usage | undefined> {
  if (pid === undefined) return undefined;
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return {
      residentBytes: Number(fields[RESIDENT_PAGES]) * PAGE_BYTES,
      numThreads: Number(fields[NUM_THREADS]),
    };
  } catch {
    return undefined;
  }
}
