/** Reads the CPU time of running processes from /proc. */

import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second on every platform that Node supports. */
const MS_PER_TICK = 10;

interface Process {
  readonly parent: number;
  /** CPU time of the process and of its ended children. */
  readonly cpuMs: number;
}

/** CPU time of processes with all of their descendants, in milliseconds, by the given names. */
export function cpuTimesOf(pids: Readonly<Record<string, number>>): Record<string, number> {
  const processes = readProcesses();
  const below = (pid: number): number => {
    let sum = processes.get(pid)?.cpuMs ?? 0;
    for (const [child, { parent }] of processes) if (parent === pid) sum += below(child);
    return sum;
  };
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, below(pid)]));
}

function readProcesses(): Map<number, Process> {
  const found = new Map<number, Process>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const read = readProcess(entry);
    if (read !== undefined) found.set(Number(entry), read);
  }
  return found;
}

/** @returns undefined for a process that has ended. */
function readProcess(pid: string): Process | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name, in parentheses, may hold anything; what follows it is numbers. proc(5) counts fields from 1.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  return { parent: field(4), cpuMs: MS_PER_TICK * (field(14) + field(15) + field(16) + field(17)) };
}
