/**
 * Drops the episodes of runs that are over, as soon as their other readers (judge, tracer) are through with them.
 *
 * It asks the stream and the database, and remembers nothing: a trainer that dies, or a reader that comes back an hour
 * later, leaves nothing behind. Several at once do no harm.
 */

import { describeError, pause } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { RunRegistry, ScoredRollouts } from "./ports.ts";

export interface EpisodeJanitorDeps {
  readonly registry: Pick<RunRegistry, "overAmong">;
  readonly rollouts: Pick<ScoredRollouts, "runs" | "purgeBelow">;
  readonly logger: Logger;
}

/** One small request where the stream is empty; episodes that nobody needs only take room on the disk. */
const LOOK_EVERY_MS = 2_000;

/** Looks again and again until the signal aborts. Failures are logged, and the next look tries again. */
export async function dropEpisodesOfEndedRuns(deps: EpisodeJanitorDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await dropOnce(deps);
    } catch (error) {
      deps.logger.warn("episodes of ended runs are not dropped", { error: describeError(error) });
    }
    await pause(LOOK_EVERY_MS, signal);
  }
}

/** One look. */
export async function dropOnce({ registry, rollouts }: EpisodeJanitorDeps): Promise<void> {
  const found = await rollouts.runs();
  if (found.length === 0) return;
  for (const runId of await registry.overAmong(found)) {
    await rollouts.purgeBelow(runId, Number.MAX_SAFE_INTEGER);
  }
}
