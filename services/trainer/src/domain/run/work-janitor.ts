/**
 * Drops what ended runs have left on the bus: their jobs, the rewards that they wait for or were given, and their episodes as soon
 * as the other readers (judge, tracer) have read them. A failed run keeps, for a while, the episodes that it would replay when it is resumed.
 *
 * It asks the streams and the database each time and remembers nothing, so work is dropped even after a trainer died, a
 * reader came back an hour later, or a restarted bus has jobs again that were done. Several janitors at once do no harm.
 */

import { describeError, pause } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { JobQueue } from "../rollouts/jobs.ts";
import type { ScoredRollouts } from "../rollouts/scored-rollout.ts";
import type { RunRegistry } from "./run-registry.ts";

export interface WorkJanitorDeps {
  readonly registry: Pick<RunRegistry, "overAmong">;
  readonly jobs: Pick<JobQueue, "runs" | "purge">;
  readonly rollouts: Pick<ScoredRollouts, "runs" | "purgeBelow">;
  readonly rewards: LaterRewards;
  readonly logger: Logger;
}

/** The rewards that come after rollouts have ended. */
export interface LaterRewards {
  /** @returns the ids of the runs that wait for some, or did. */
  runs(): Promise<string[]>;
  /** Removes everything about the rewards of a run. */
  drop(runId: string): Promise<void>;
}

/** Cheap, since empty streams cost two small requests; and not urgent, since unneeded work only takes disk space. */
const LOOK_EVERY_MS = 2_000;

/** Looks again and again until the signal aborts. Failures are logged, and the next look tries again. */
export async function dropWorkOfEndedRuns(deps: WorkJanitorDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await dropOnce(deps);
    } catch (error) {
      deps.logger.warn("could not drop what ended runs have left", { error: describeError(error) });
    }
    await pause(LOOK_EVERY_MS, signal);
  }
}

/** One look. */
export async function dropOnce({ registry, jobs, rollouts, rewards }: WorkJanitorDeps): Promise<void> {
  const [withJobs, withEpisodes, withRewards] = await Promise.all([
    jobs.runs(),
    rollouts.runs(),
    rewards.runs(),
  ]);
  const found = [...new Set([...withJobs, ...withEpisodes, ...withRewards])];
  if (found.length === 0) return;
  for (const { runId, neededFrom } of await registry.overAmong(found)) {
    if (withJobs.includes(runId)) await jobs.purge(runId);
    // Before the episodes, as those that wait for rewards are kept.
    if (withRewards.includes(runId)) await rewards.drop(runId);
    if (withEpisodes.includes(runId)) await rollouts.purgeBelow(runId, neededFrom);
  }
}
