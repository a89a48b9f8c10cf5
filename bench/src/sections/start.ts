/**
 * Measures how long a user waits from the command, with everything installed, until all six services are up, and until the
 * first step of the first example, which includes its warm start and first evaluation.
 *
 * S1: the program of `npm start` is timed in its own project folder, and ended as by Ctrl-C.
 * S2: a round is two starts: one in a new folder, where the database is created, and one more in the same folder.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { DeadlineError, deadline, TerminalError } from "@hone/core";
import { measured, type Section } from "../report/report.ts";
import { REPOSITORY } from "../repository.ts";
import type { BenchSettings } from "../section.ts";

/** Much longer than the ten seconds that a start should take. */
const START_DEADLINE_MS = 180_000;
const END_DEADLINE_MS = 30_000;
const EXAMPLE = path.join("examples", "01-frozen-lake", "run.yaml");
const SERVICES_ARE_UP = /six services are up/;
const FIRST_STEP = /^step +1\//;

export async function measureStart({ rounds, isQuick, say }: BenchSettings): Promise<Section> {
  const firstUp: number[] = [];
  const firstStep: number[] = [];
  const laterUp: number[] = [];
  for (let round = 1; round <= (isQuick ? 1 : rounds); round++) {
    say(`the start, round ${round}`);
    const state = await mkdtemp(path.join(tmpdir(), "hone-bench-start-"));
    try {
      const [up, step] = await secondsUntil(state, [SERVICES_ARE_UP, FIRST_STEP]);
      firstUp.push(up!);
      firstStep.push(step!);
      const [again] = await secondsUntil(state, [SERVICES_ARE_UP]); // S2
      laterUp.push(again!);
    } finally {
      await rm(state, { recursive: true, force: true });
    }
  }
  return {
    name: "start",
    title: "From the command on an installed tree",
    rows: [
      measured("services up, new folder", "s", firstUp, "bus, database made, six services ready", "lower"),
      measured("services up, again", "s", laterUp, "the same in a folder that was used before", "lower"),
      measured(
        "first step",
        "s",
        firstStep,
        "of the first example, warm start included, new folder",
        "lower",
      ),
    ],
  };
}

/** Starts the example, measures the seconds until each line is printed, in order, and ends it (S1). */
async function secondsUntil(state: string, lines: readonly RegExp[]): Promise<number[]> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ["scripts/bootstrap.mjs", "apps/cli/src/main.ts", "run", EXAMPLE], {
    cwd: REPOSITORY,
    env: { ...process.env, HONE_STATE_DIR: state },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const found: number[] = [];
  try {
    await deadline("the first example to start", START_DEADLINE_MS, async () => {
      for await (const line of createInterface({ input: child.stdout })) {
        if (lines[found.length]?.test(line)) found.push((performance.now() - startedAt) / 1_000);
        if (found.length === lines.length) return;
      }
    });
  } finally {
    child.stdout.resume();
    child.kill("SIGINT");
    await deadline("the first example to end", END_DEADLINE_MS, () => exited).catch((error) => {
      if (!(error instanceof DeadlineError)) throw error;
      child.kill("SIGKILL");
      throw error;
    });
  }
  if (found.length === lines.length) return found;
  throw new TerminalError("BENCH_START", `the first example ended before it printed ${lines[found.length]}`);
}
