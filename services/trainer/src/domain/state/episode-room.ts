/**
 * Makes sure that the stream of episodes has room for the next step of a run.
 *
 * A run keeps the episodes of all steps since its last whole state (one that includes the optimizer), so that a restart can
 * train on them again. If these episodes filled the stream, the run would stop for good: the next step needs room, and room
 * is made only by the next whole state, which is written after a step.
 *
 * M1: A step is committed with a whole state, even before one is due, if the episodes until the next commit may not fit. This
 *     is decided before each commit, from the stream as it is then; if the process dies in between, the next one decides again.
 * M2: The decision changes only what is written, never the training: the weights and their digest are the same either way.
 * M3: If the decision was wrong because the episodes suddenly became larger, the run starts again (see rollout-gatherer.ts):
 *     its steps are replayed, a whole state is written, and their episodes are dropped.
 * M4: If the episodes of a single step do not fit into the stream, the user must act, and the run's status says so.
 */

import type { Logger } from "@hone/telemetry";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RolloutInbox } from "../rollouts/rollout-inbox.ts";
import type { EpisodeRoom, ScoredRollout, ScoredRollouts } from "../rollouts/scored-rollout.ts";
import type { RunRecord } from "../run/run-record.ts";

/** The run and access to its stream of episodes. */
interface RoomContext {
  readonly run: RunRecord;
  readonly rollouts: ScoredRollouts;
  readonly logger: Logger;
}

/** Allows for steps of different lengths and for readers that are behind. */
const SLACK = 2;

/** @returns the number of bytes that rollouts take in the stream. */
export function episodeBytes(scored: readonly Pick<ScoredRollout, "bytes">[]): number {
  return scored.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * @returns whether the stream may have too little room for the episodes until the next commit (M1).
 * @param bytesToCome what the run itself will store until then; every other run is assumed to store as much.
 */
export function isRoomShort({ bytes, maxBytes, runs }: EpisodeRoom, bytesToCome: number): boolean {
  if (maxBytes === undefined) return false;
  return maxBytes - bytes < SLACK * bytesToCome * Math.max(1, runs.length);
}

/**
 * @returns whether a version must be written with the optimizer before that is due.
 * @param bytesToCome number of bytes that the run will store before the next commit.
 */
export async function isWholeStateWanted(
  { run, rollouts, reporter, logger }: RoomContext & { readonly reporter: RunReporter },
  version: number,
  bytesToCome: number,
): Promise<boolean> {
  if (version >= run.config.trainer.steps) return false;
  const room = await reporter.untilAvailable({ text: "the stream of episodes", owner: WaitOwner.bus }, () =>
    rollouts.room(),
  );
  if (!isRoomShort(room, bytesToCome)) return false;
  const { bytes, maxBytes } = room;
  logger.info("the optimizer is written before it is due, as EPISODES fills", {
    version,
    bytes,
    maxBytes,
    bytesToCome,
  });
  return true;
}

/**
 * Drops the episodes that no restart of the run needs any more; if that fails, the next call tries again. The position in the
 * inbox counts too: in a stream that was created anew, needed episodes have lower positions than the last commit recorded.
 */
export async function dropUnneededEpisodes({
  run,
  rollouts,
  inbox,
  progress,
  logger,
}: RoomContext & {
  readonly inbox: RolloutInbox;
  readonly progress: { readonly neededFrom: number };
}): Promise<void> {
  try {
    await rollouts.purgeBelow(run.runId, Math.min(progress.neededFrom, inbox.neededFrom));
  } catch (error) {
    logger.warn("episodes are not purged; the next step tries again", { error });
  }
}
