/**
 * What a model's code waits for: a first start of the account, which makes the snapshot; a cold start, in a process of a service that has
 * run no code yet but finds the snapshot on disk; a start in one that has; a call to a Python that waits.
 *
 *   node libs/sandbox/bench/starts.ts [--repeats 5] [--calls 200]
 *
 * Each cold start is a process of its own. Figures of a busy machine say more of the machine: its load stands beside them.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { kernelWalls, PythonSandbox } from "../src/index.ts";

interface Told {
  /** From the order to the result, when nothing is there but the program. */
  readonly coldMs: number;
  /** The same once more, with a process of Python that is made for it. */
  readonly startMs: number;
  readonly firstCallMs: number;
  readonly callMs: number;
  /** The slowest of a hundred. */
  readonly slowCallMs: number;
  /** Memory and processor time of one waiting Python. */
  readonly residentMib: number;
  readonly dataMib: number;
  readonly cpuMs: number;
  /** Memory of the program that started them. */
  readonly ownResidentMib: number;
}

const { values } = parseArgs({
  options: {
    repeats: { type: "string", default: "5" },
    calls: { type: "string", default: "200" },
    once: { type: "boolean", default: false },
  },
});
const LIMITS = { timeMs: 60_000, maxOutputBytes: 1_000 };
const { signal } = new AbortController();
const MS_PER_TICK = 10;

if (values.once) console.log(JSON.stringify(await measure()));
else await report();

async function report(): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "hone-starts-"));
  const arguments_ = [import.meta.filename, "--once", "--calls", values.calls];
  const env = { ...process.env, HONE_CACHE_DIR: folder };
  const once = (): Told => JSON.parse(execFileSync(process.execPath, arguments_, { env, encoding: "utf8" }));
  const load = () =>
    loadavg()
      .map((each) => each.toFixed(1))
      .join(" ");
  try {
    const before = load();
    const first = once();
    const all = Array.from({ length: Number(values.repeats) }, once);
    const { names } = await kernelWalls();
    console.log(
      `${availableParallelism()} cores, load ${before} before and ${load()} after; walls: ${names.join(", ")}`,
    );
    console.log(`first start of the account: ${first.coldMs.toFixed(0)} ms`);
    for (const name of Object.keys(first) as (keyof Told)[]) {
      const sorted = all.map((each) => each[name]).sort((a, b) => a - b);
      const [least, middle, most] = [0, Math.floor(sorted.length / 2), sorted.length - 1].map((i) =>
        sorted[i]?.toFixed(1),
      );
      console.log(`${name}: median ${middle}, ${least} to ${most} of ${sorted.length}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(): Promise<Told> {
  // One place: nothing is started ahead.
  const sandbox = new PythonSandbox({ maxProcesses: 1 });
  const msOf = async (work: () => Promise<unknown>) => {
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  const coldMs = await msOf(() => sandbox.run("6 * 7", LIMITS, signal));
  const session = sandbox.open();
  const call = () => session.run("6 * 7", LIMITS, signal);
  const startMs = await msOf(call);
  const pid = childOf(process.pid);
  const cpuMs = cpuOf(pid);
  const firstCallMs = await msOf(call);
  const calls: number[] = [];
  for (let i = 0; i < Number(values.calls); i++) calls.push(await msOf(call));
  calls.sort((a, b) => a - b);
  const at = (share: number) => calls[Math.floor(calls.length * share)] ?? 0;
  const [residentMib, dataMib] = [mebibytes(pid, "VmRSS"), mebibytes(pid, "VmData")];
  session.close();
  await sandbox.close();
  const ownResidentMib = mebibytes(process.pid, "VmRSS");
  return {
    coldMs,
    startMs,
    firstCallMs,
    callMs: at(0.5),
    slowCallMs: at(0.99),
    residentMib,
    dataMib,
    cpuMs,
    ownResidentMib,
  };
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").at(-1));
}

function mebibytes(pid: number, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(found?.[1]) / 1_024;
}

/** So far, of all threads and of what became this process; in the kernel's ticks. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}
