/** Reads the memory and the threads that a process uses, on systems with /proc. */

import { readFile } from "node:fs/promises";

export interface Usage {
  readonly residentBytes: number;
  readonly numThreads: number;
}

const PAGE_BYTES = 4_096;
/** Fields of /proc/PID/stat, counted after the program's name, which may contain any characters. */
const NUM_THREADS = 17;
const RESIDENT_PAGES = 21;

/** @returns undefined for a process that has ended. */
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
