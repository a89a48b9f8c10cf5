/**
 * Keeps a number of rollouts open on a stack of its own, in several runs at once, and looks at everything every few
 * seconds.
 *
 * L1: as soon as a run ends another begins, and one more where the queue runs dry and the last one has had its time to
 *     publish, so that rollouts never run out: the last rollouts of a run, and its training, take their time.
 * L2: a look that the bus does not answer in time says nothing of the load, and ends it only when it is one of many.
 * L3: at the end the runs that are not over are cancelled; of those that are, each rollout must stand in the ledger once.
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
  /** Asked after each sample, with how many runs ended by themselves so far: true ends the load. */
  readonly isOver: (samples: readonly LoadSample[], endedRuns: number) => boolean;
  readonly onSample?: (sample: LoadSample) => void;
  /** @default 5_000 */
  readonly intervalMs?: number;
}

export interface HeldLoad {
  readonly samples: readonly LoadSample[];
  /** Runs that ended by themselves. */
  readonly completedRuns: number;
  /** Looks that were not answered (L2). */
  readonly missedLooks: number;
  /** Rollouts of those runs that the ledger lacks or holds twice (L3), and runs that failed; empty = none. */
  readonly faults: readonly string[];
}

const DEFAULT_INTERVAL_MS = 5_000;
/** In a row (L2): a minute. */
const MAX_MISSED_LOOKS = 12;
/** Fewer waiting jobs than this, and no run has any to publish: the trainers keep twice as many in the queue. */
const DRY_QUEUE = 512;
/** In which a run that was begun has jobs in the queue (L1). */
const PUBLISHES_WITHIN_MS = 15_000;
/** Runs at once at most, for each that was asked for (L1). */
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
    .map((slot) => `${runId}: ${slot} stands ${times.get(slot) ?? 0} times in the ledger`);
}
