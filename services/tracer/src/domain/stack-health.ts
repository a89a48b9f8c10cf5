/** Which parts of Hone answer, and what that means for the runs that are shown. */

import type { RunSummary } from "./ports.ts";

/** A part that does not answer, since when (Unix milliseconds); null = it answers. */
export interface PartHealth {
  readonly silentSinceMs: number | null;
}

export interface StackServiceHealth extends PartHealth {
  readonly service: string;
  /** Processes that answered last. */
  readonly instances: number;
  /** What keeps them from being ready, one sentence each. */
  readonly reasons: readonly string[];
}

export interface StackHealth {
  readonly bus: PartHealth;
  readonly database: PartHealth;
  readonly services: readonly StackServiceHealth[];
  /** What could not be decoded and lies in the stream DEAD. */
  readonly dead: { readonly count: number; readonly lastReason: string; readonly lastSubject: string };
}

/** Whose turn it is where the trainer itself cannot say so. */
const TRAINER = "trainer";
const BUS = "bus";

/**
 * A run as its trainer published it, unless the trainer or the bus does not answer: then that is what it waits for, as
 * what was published last is no longer true.
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
