/**
 * Keeps a number of rollouts open on its own stack, in several runs at once, and takes a sample every few seconds.
 *
 * L1: when a run ends another one is started. If the queue of jobs is nearly empty and the newest run has had time to publish,
 *     one more is started, because a run's last rollouts and its training leave the queue empty.
 * L2: a sample that the bus does not answer in time is skipped; many in a row end the load.
 * L3: at the end active runs are cancelled. For each run that ended, every rollout must be in the ledger exactly once.
 */

import { delay, RetryableError, runIdOf, Split, slotKey } from "@hone/core";
import { publishRequest, startStack, type TestStack } from "@hone/integration-tests/support";
import { loadRun } from "./load-run.ts";
import { type LoadSample, processesOf, takeSample } from "./load-sample.ts";

export interface HoldLoadOptions {
  readonly rollouts: number;
  /** Processes of agent-rollout, which share the rollouts, and of the trainer, which share the runs. */
  readonly agentRollouts: number;
  readonly trainers: number;
  readonly runs: number;
  readonly stepDelayMs: number;
  readonly tasksPerRun: number;
  /** Called after each sample with the number of runs that ended by themselves; true ends the load. */
  readonly isOver: (samples: readonly LoadSample[], endedRuns: number) => boolean;
  readonly onSample?: (sample: LoadSample) => void;
  /** @default 5_000 */
  readonly intervalMs?: number;
}

export interface HeldLoad {
  readonly samples: readonly LoadSample[];
  /** Runs that ended by themselves. */
  readonly completedRuns: number;
  /** Number of samples that were skipped (L2). */
  readonly missedLooks: number;
  /** Rollouts of ended runs that the ledger lacks or has twice (L3), and runs that failed. */
  readonly faults: readonly string[];
}

const DEFAULT_INTERVAL_MS = 5_000;
/** Skipped samples in a row that end the load (L2): a minute of them. */
const MAX_MISSED_LOOKS = 12;
/** With fewer waiting jobs than this, no run has jobs left to publish: trainers keep twice as many in the queue. */
const DRY_QUEUE = 512;
/** Time in which a new run has published jobs (L1). */
const PUBLISHES_WITHIN_MS = 15_000;
/** Most runs at once, as a multiple of the requested number (L1). */
const MAX_RUNS_FACTOR = 2;

/** @throws when the stack does not come up, or does not answer for a minute. */
export async function holdLoad(options: HoldLoadOptions): Promise<HeldLoad> {
  const { agentRollouts, trainers } = options;
  await using stack = await startStack({
    env: { HONE_ROLLOUT_CONCURRENCY: String(Math.ceil(options.rollouts / agentRollouts)) },
    replicas: { "agent-rollout": agentRollouts, trainer: trainers },
  });
  const processes = processesOf(stack);
  const { intervalMs = DEFAULT_INTERVAL_MS } = options;
  const active = new Set<string>();
  const samples: LoadSample[] = [];
  let started = 0;
  let startedAt = 0;
  let missedLooks = 0;
  let missedInRow = 0;
  const startRun = async () => {
    const name = `load-${started}`;
    const run = await loadRun({
      name,
      seed: started++,
      tasks: options.tasksPerRun,
      stepDelayMs: options.stepDelayMs,
    });
    startedAt = performance.now();
    active.add(runIdOf(name, await publishRequest(stack.bus, JSON.stringify(run))));
  };
  const beganAt = performance.now();
  const ended = new Set<string>();
  while (!options.isOver(samples, ended.size)) {
    while (active.size < options.runs) await startRun();
    await delay(intervalMs);
    let sample: LoadSample;
    try {
      sample = await takeSample(stack, processes, beganAt);
    } catch (error) {
      if (!(error instanceof RetryableError) || ++missedInRow > MAX_MISSED_LOOKS) throw error;
      missedLooks++; // L2
      continue;
    }
    missedInRow = 0;
    samples.push(sample);
    options.onSample?.(sample);
    for (const runId of await endedRuns(stack)) {
      active.delete(runId);
      ended.add(runId);
    }
    const isDry = sample.waitingJobs < DRY_QUEUE && performance.now() - startedAt > PUBLISHES_WITHIN_MS;
    if (isDry && active.size < MAX_RUNS_FACTOR * options.runs) await startRun(); // L1
  }
  const faults: string[] = [];
  for (const runId of ended) faults.push(...(await faultsOf(stack, runId, options.tasksPerRun)));
  await Promise.all([...active].map((runId) => stack.hone("cancel", runId))); // L3
  return { samples, completedRuns: ended.size, missedLooks, faults };
}

async function endedRuns({ sql }: TestStack): Promise<string[]> {
  const rows = await sql<{ run_id: string }[]>`
    select run_id from trainer.runs where stage not in ('admitting', 'active')`;
  return rows.map(({ run_id }) => run_id);
}

async function faultsOf({ sql }: TestStack, runId: string, tasks: number): Promise<string[]> {
  const [run] = await sql<{ stage: string }[]>`select stage from trainer.runs where run_id = ${runId}`;
  if (run?.stage !== "completed") return [`${runId} is ${run?.stage ?? "gone"}`];
  const rows = await sql<{ slot: string }[]>`select slot from trainer.ledger where run_id = ${runId}`;
  const times = new Map<string, number>();
  for (const { slot } of rows) times.set(slot, (times.get(slot) ?? 0) + 1);
  return Array.from({ length: tasks }, (_, task) =>
    slotKey({ split: Split.warmStart, step: 0, task, index: 0 }),
  )
    .filter((slot) => times.get(slot) !== 1)
    .map((slot) => `${runId}: ${slot} is ${times.get(slot) ?? 0} times in the ledger`);
}
