/** Which parts of Hone answer, and what that means for the state of runs. */

import type { RunSummary } from "./ports.ts";

export interface PartHealth {
  /** Since when the part has not answered, Unix milliseconds; null = it answers. */
  readonly silentSinceMs: number | null;
}

export interface StackServiceHealth extends PartHealth {
  readonly service: string;
  /** Number of processes that answered the last request. */
  readonly instances: number;
  /** What keeps them from being ready, one sentence each. */
  readonly reasons: readonly string[];
}

export interface QueueDepth {
  /** Messages that nobody has taken. */
  readonly pending: number;
  /** Messages that somebody works on. */
  readonly inWork: number;
}

export interface StackHealth {
  readonly bus: PartHealth;
  readonly database: PartHealth;
  readonly services: readonly StackServiceHealth[];
  /** What waits on the bus, of all runs; null = the bus does not tell. */
  readonly queues: {
    /** Jobs, for agent-rollout. */
    readonly jobs: QueueDepth;
    /** Finished episodes, for the judge. */
    readonly episodes: QueueDepth;
  } | null;
  /** Messages that could not be decoded; they are in the stream DEAD. */
  readonly dead: { readonly count: number; readonly lastReason: string; readonly lastSubject: string };
}

/** The parts that a run waits for when its trainer cannot report a state. */
const TRAINER = "trainer";
const BUS = "bus";

/**
 * Replaces what a run waits for when its trainer or the bus does not answer: the run then waits for that part, and the
 * state that the trainer published last is no longer true.
 */
export function withOwnersHealth<Run extends RunSummary>(run: Run, health: StackHealth): Run {
  if (run.endedAtMs !== null) return run;
  const trainer = health.services.find(({ service }) => service === TRAINER);
  const owner = health.bus.silentSinceMs === null ? TRAINER : BUS;
  const silentSinceMs = health.bus.silentSinceMs ?? trainer?.silentSinceMs ?? null;
  if (silentSinceMs === null) return run;
  return {
    ...run,
    waitingFor: `the ${owner}, which does not answer`,
    waitingOwner: owner,
    waitingSinceMs: silentSinceMs,
  };
}
