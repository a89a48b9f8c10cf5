/**
 * Drops what runs that are over have left on the bus: their jobs, and their episodes as soon as their other readers
 * (judge, tracer) are through with them. A failed run keeps, for a while, the episodes that it would replay when it is resumed.
 *
 * It asks the streams and the database, and remembers nothing: a trainer that dies, a reader that comes back an hour
 * later, or a bus that was killed and has jobs again that were done, leaves nothing behind. Several at once do no harm.
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
  readonly logger: Logger;
}

/** Two small requests where the streams are empty; what nobody needs only takes room on the disk. */
const LOOK_EVERY_MS = 2_000;

/** Looks again and again until the signal aborts. Failures are logged, and the next look tries again. */
export async function dropWorkOfEndedRuns(deps: WorkJanitorDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await dropOnce(deps);
    } catch (error) {
      deps.logger.warn("what ended runs have left is not dropped", { error: describeError(error) });
    }
    await pause(LOOK_EVERY_MS, signal);
  }
}

/** One look. */
export async function dropOnce({ registry, jobs, rollouts }: WorkJanitorDeps): Promise<void> {
  const [withJobs, withEpisodes] = await Promise.all([jobs.runs(), rollouts.runs()]);
  const found = [...new Set([...withJobs, ...withEpisodes])];
  if (found.length === 0) return;
  for (const { runId, neededFrom } of await registry.overAmong(found)) {
    if (withJobs.includes(runId)) await jobs.purge(runId);
    if (withEpisodes.includes(runId)) await rollouts.purgeBelow(runId, neededFrom);
  }
}
