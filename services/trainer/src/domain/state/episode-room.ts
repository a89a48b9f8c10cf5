/**
 * Sees to it that the stream of episodes has room for what a run does next.
 *
 * A run keeps the episodes of all steps since its last whole state (one with the optimizer), so that a restart can train
 * them again. A stream that fills with them would stop the run for good: the next step needs room, and room comes only
 * with the next whole state, which follows a step.
 *
 * M1: a step is committed with a whole state, due or not, where the episodes before the next commit may not fit. That is decided
 *     before each commit, from the stream as it is then: if the process dies in between, the next one decides anew.
 * M2: the decision says what is written, never what is trained: weights and their digest are the same with either.
 * M3: where the decision was wrong because the episodes suddenly grew, the run starts again (see rollout-gatherer.ts): its
 *     steps are replayed into a whole state, and their episodes dropped.
 * M4: a step that alone is larger than the stream waits for people, and the published state says so.
 */

import type { Logger } from "@hone/telemetry";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RolloutInbox } from "../rollouts/rollout-inbox.ts";
import type { EpisodeRoom, ScoredRollout, ScoredRollouts } from "../rollouts/scored-rollout.ts";
import type { RunRecord } from "../run/run-record.ts";

/** The run, and the stream of its episodes. */
interface RoomContext {
  readonly run: RunRecord;
  readonly rollouts: ScoredRollouts;
  readonly logger: Logger;
}

/** An episode is stored twice, once finished and once scored. */
const COPIES = 2;
/** Factor for steps of different lengths and for readers that lag behind. */
const SLACK = 2;

/** The bytes that rollouts take in the stream. */
export function episodeBytes(scored: readonly Pick<ScoredRollout, "bytes">[]): number {
  return COPIES * scored.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * Whether the stream may have too little room for the episodes before the next commit (M1).
 * @param bytesToCome what the run itself will store until then; every other run is assumed to store as much.
 */
export function isRoomShort({ bytes, maxBytes, runs }: EpisodeRoom, bytesToCome: number): boolean {
  if (maxBytes === undefined) return false;
  return maxBytes - bytes < SLACK * bytesToCome * Math.max(1, runs.length);
}

/**
 * Whether a version is to be written with the optimizer though that is not due.
 * @param bytesToCome what the run will store before the next commit.
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
 * Drops the episodes that no restart of the run needs any more; where that fails, the next call tries again. The position
 * that was read counts: in a stream that was created anew, needed episodes have lower positions than the last commit knew.
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
