/** The judge `environment`: the episode's return. */

import type { JudgedEpisode } from "../judged-episode.ts";

/** @returns the sum of the rewards that the environment gave, format penalties included. */
export function judgeEnvironment(episode: JudgedEpisode): number {
  return episode.environmentReturn;
}
