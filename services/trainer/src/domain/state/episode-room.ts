/**
 * Room in the stream of episodes for what a run does next.
 *
 * Of the steps since the last state with the optimizer a run keeps its episodes, so that a restart can train them again. A
 * stream that fills with them would stop the run for good: the next step is not done without room, and room comes with the
 * next whole state only, which follows a step.
 *
 * M1: a step is committed with a whole state, due or not, where what comes before the next commit may not fit. That is decided
 *     before each commit, from the stream as it is then: a process that dies in between leaves the next one to decide anew.
 * M2: the decision says what is written, never what is trained: weights and their digest are the same with either.
 * M3: where it was wrong, as the episodes grew all at once, the run is taken up once more (see rollout-gatherer.ts): its steps are
 *     replayed into a whole state, and their episodes dropped.
 * M4: a step that alone is larger than the stream waits for people, who are told so.
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

/** An episode lies there finished and scored. */
const COPIES = 2;
/** Steps differ in length, and readers take their time. */
const SLACK = 2;

/** Room that rollouts take in the stream. */
export function episodeBytes(scored: readonly Pick<ScoredRollout, "bytes">[]): number {
  return COPIES * scored.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * Whether what comes before the next commit may find no room (M1).
 * @param bytesToCome what the run itself will store until then; each other run is taken for as large.
 */
export function isRoomShort({ bytes, maxBytes, runs }: EpisodeRoom, bytesToCome: number): boolean {
  if (maxBytes === undefined) return false;
  return maxBytes - bytes < SLACK * bytesToCome * Math.max(1, runs.length);
}

/**
 * Whether a version is to be written with the optimizer though that is not due.
 * @param bytesToCome room that what comes before the next commit will take.
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
 * Drops the episodes that no restart of the run needs any more; where that fails, whoever does it next tries again.
 * What is read has the last word: in a stream that began again, what is needed has lower positions than the last commit knew.
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
