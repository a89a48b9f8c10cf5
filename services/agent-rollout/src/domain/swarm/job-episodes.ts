/** How one job offers its attempts to clients, and says what became of them. */

import type { AgentResult } from "@hone/agents";
import type { RolloutRecord } from "../rollout-job.ts";
import type { LentEpisodeParts } from "./lent-episode.ts";

export interface JobEpisodes {
  /**
   * Offers an attempt, and waits until a client has played it.
   * @param signal ends the attempt.
   * @throws {EpisodeReturnedError | EpisodeNotBegunError | EpisodeFailedError} and the signal's reason.
   */
  offer(parts: LentEpisodeParts, signal: AbortSignal): Promise<AgentResult>;
  /** The attempt that was offered last does not count. */
  failed(reason: string): void;
  /** The rollout's episode is stored. @param isDuplicate whether another attempt's was stored before it. */
  stored(record: RolloutRecord, isDuplicate: boolean): void;
}
