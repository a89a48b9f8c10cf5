/** Reads the memory of running processes from /proc. */

import { readdirSync, readFileSync } from "node:fs";

const KIBIBYTE = 1_024;

/** Resident set of one process in bytes; undefined when there is no such process. */
export function residentBytes(pid: number): number | undefined {
  return readKibibytes(`/proc/${pid}/status`, /^VmRSS:\s+(\d+)/m);
}

/** The largest resident set of a process so far, in bytes; undefined when there is no such process. */
export function peakBytes(pid: number): number | undefined {
  return readKibibytes(`/proc/${pid}/status`, /^VmHWM:\s+(\d+)/m);
}

/**
 * Memory of a server with child processes, such as PostgreSQL; shared memory is counted once. Undefined when
 * there is no such process.
 */
export function familyBytes(pid: number): number | undefined {
  const shares = [pid, ...childrenOf(pid)].map((each) =>
    readKibibytes(`/proc/${each}/smaps_rollup`, /^Pss:\s+(\d+)/m),
  );
  if (shares[0] === undefined) return undefined;
  return shares.reduce<number>((sum, share) => sum + (share ?? 0), 0);
}

function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/status`)?.includes(`\nPPid:\t${parent}\n`));
}

function readKibibytes(file: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(read(file) ?? "")?.[1];
  return found === undefined ? undefined : Number(found) * KIBIBYTE;
}

/** @returns undefined for a process that has ended. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
