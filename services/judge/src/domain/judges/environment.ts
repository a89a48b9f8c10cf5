/** The judge `environment`: the episode's return, and of each turn what the environment or a tool gave it. */

import type { Judgement } from "../judge.ts";
import type { JudgedEpisode } from "../judged-episode.ts";

/** @returns the sum of the rewards that the environment gave, format penalties included. */
export function judgeEnvironment({ environmentReturn, turns }: JudgedEpisode): Judgement {
  const turnRewards = turns.flatMap(({ reward }, turn) =>
    reward === undefined ? [] : [{ turn, value: reward }],
  );
  return { value: environmentReturn, turnRewards };
}
