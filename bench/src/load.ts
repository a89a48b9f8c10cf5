/**
 * `npm run load`: keeps thousands of rollouts open in several runs, and measures each process.
 *
 *   npm run load -- [--rollouts 10000] [--replicas 2] [--trainers 1] [--runs 3] [--minutes 30] [--step-delay-ms 20000]
 *                   [--tasks-per-run N] [--json FILE]
 *
 * Starts its own stack. Every few seconds it prints a line with the memory of each process. At the end it prints whether the
 * load was held, and whether all processes stayed small and did not grow (load-verdict.ts), and writes everything as JSON.
 * The exit code is 0 only if so.
 */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describeError, HoneError, printUsage, UsageError } from "@hone/core";
import { mebibytes } from "./growth.ts";
import { holdLoad } from "./load/hold-load.ts";
import { parseLoadOptions } from "./load/load-options.ts";
import type { LoadSample } from "./load/load-sample.ts";
import { judgeLoad, LOAD_LIMITS } from "./load/load-verdict.ts";
import { describeMachine } from "./report/machine.ts";

const SECONDS_PER_MINUTE = 60;
/** Time limit for reaching the load. */
const MAX_RAMP_SECONDS = 600;

try {
  const options = parseLoadOptions(process.argv.slice(2));
  await mkdir(path.dirname(options.jsonFile), { recursive: true });
  const machine = await describeMachine(path.dirname(options.jsonFile));
  console.log(machine);
  console.log(
    `${options.rollouts} open rollouts in ${options.agentRollouts} processes, ${options.runs} runs of ${options.tasksPerRun} for ${options.minutes} minutes`,
  );
  const held = await holdLoad({ ...options, isOver: isOver(options), onSample: tell });
  const verdict = judgeLoad(held.samples, options.rollouts);
  const problems = [...verdict.problems, ...held.faults];
  console.log(
    `\n${verdict.peakInFlight} in flight at most, held in ${Math.round(verdict.heldShare * 100)} % of the samples; ` +
      `${verdict.episodesPerSecond.toFixed(0)} episodes/s; ${held.completedRuns} runs completed`,
  );
  if (held.missedLooks > 0) console.log(`${held.missedLooks} looks were not answered in time`);
  console.log(`growth: within the last ${Math.round(verdict.settledSeconds / SECONDS_PER_MINUTE)} minutes`);
  for (const { name, peakBytes, meanBytes, growthBytes, cores } of verdict.processes) {
    console.log(
      `${name.padEnd(18)} peak ${mebibytes(peakBytes).padStart(9)}  mean ${mebibytes(meanBytes).padStart(9)}  ` +
        `grew ${mebibytes(growthBytes).padStart(8)}  ${cores.toFixed(2)} cores`,
    );
  }
  if (verdict.aboveAim.length > 0) {
    console.log(`above ${mebibytes(LOAD_LIMITS.aimBytes)}, the aim: ${verdict.aboveAim.join(", ")}`);
  }
  console.log(problems.length === 0 ? "\nPASS" : `\nFAIL\n${problems.join("\n")}`);
  const report = {
    machine,
    options,
    limits: LOAD_LIMITS,
    verdict,
    problems,
    missedLooks: held.missedLooks,
    samples: held.samples,
  };
  await writeFile(options.jsonFile, `${JSON.stringify(report, undefined, 2)}\n`);
  console.log(`written to ${path.relative(process.cwd(), options.jsonFile)}`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} catch (error) {
  if (error instanceof UsageError) printUsage(process, error);
  else {
    console.error(error instanceof HoneError ? describeError(error) : error);
    process.exitCode = 1;
  }
}

function isOver({ rollouts, minutes }: { rollouts: number; minutes: number }) {
  return (samples: readonly LoadSample[]): boolean => {
    const reached = samples.find(({ inFlight }) => inFlight >= LOAD_LIMITS.reachedShare * rollouts);
    const now = samples.at(-1)?.seconds ?? 0;
    return reached === undefined
      ? now > MAX_RAMP_SECONDS
      : now - reached.seconds > minutes * SECONDS_PER_MINUTE;
  };
}

function tell(sample: LoadSample): void {
  const { seconds, inFlight, waitingJobs, redelivered, unscored, unstored, episodes, processes } = sample;
  const memory = Object.entries(processes).map(
    ([name, { memoryBytes }]) => `${name} ${mebibytes(memoryBytes)}`,
  );
  console.log(
    `${seconds.toFixed(0)} s: ${inFlight} in flight, ${waitingJobs} wait, ${redelivered} came again; ` +
      `${episodes} episodes, ${unscored} not scored, ${unstored} not stored; ${memory.join(", ")}`,
  );
}
