import assert from "node:assert/strict";
import { test } from "node:test";
import { holdLoad } from "./hold-load.ts";

/* A short version of `npm run load`: thousands of rollouts open at once, in two runs, on all six services. */

const ROLLOUTS = 2_000;
const TASKS_PER_RUN = 2_500;
const MAX_BYTES = 1_024 ** 3;
/** Two runs of rollouts of 20 s take a minute, and several on a busy machine. */
const DEADLINE_SECONDS = 300;

test("two runs hold 2,000 rollouts open, every rollout is trained once, and no process takes a gigabyte", async () => {
  let mostInFlight = 0;
  const { samples, completedRuns, faults } = await holdLoad({
    rollouts: ROLLOUTS,
    agentRollouts: 2,
    trainers: 1,
    runs: 2,
    stepDelayMs: 4_000,
    tasksPerRun: TASKS_PER_RUN,
    intervalMs: 500,
    isOver: (all, ended) => {
      mostInFlight = Math.max(mostInFlight, all.at(-1)?.inFlight ?? 0);
      return ended >= 2 || (all.at(-1)?.seconds ?? 0) > DEADLINE_SECONDS;
    },
  });
  assert.ok(mostInFlight >= 0.95 * ROLLOUTS, `${mostInFlight} rollouts were in flight`);
  assert.ok(completedRuns >= 2, `${completedRuns} runs completed`);
  assert.deepEqual(faults, []);
  for (const [name, { pid }] of Object.entries(samples[0]!.processes)) {
    const ofProcess = samples.map(({ processes }) => processes[name]!);
    const peak = Math.max(...ofProcess.map(({ memoryBytes }) => memoryBytes));
    assert.ok(peak > 0 && peak < MAX_BYTES, `${name} took ${peak} bytes`);
    assert.ok(
      ofProcess.every((each) => each.pid === pid),
      `${name} died`,
    );
  }
});
