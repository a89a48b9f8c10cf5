/** The episode that an environment is in, for its steps. */

import { TerminalError } from "@hone/core";

/**
 * @param isOver whether the episode has ended.
 * @param place the environment in its messages, such as "the lake".
 * @throws {TerminalError} before the first reset, and after the end of an episode.
 */
export function runningEpisode<Episode>(
  episode: Episode | undefined,
  isOver: (episode: Episode) => boolean,
  place: string,
): Episode {
  if (episode !== undefined && !isOver(episode)) return episode;
  throw new TerminalError(
    "EPISODE_NOT_RUNNING",
    episode === undefined
      ? `${place} needs a reset before its first step`
      : `the episode is over; reset ${place} before the next step`,
  );
}
