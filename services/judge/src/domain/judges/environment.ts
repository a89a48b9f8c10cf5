/** The judge `environment`: the episode's return, and each turn's reward from the environment or a tool. */

import type { Judgement } from "../judge.ts";
import type { JudgedEpisode } from "../judged-episode.ts";

/** @returns the sum of the environment's rewards, including format penalties. */
export function judgeEnvironment({ environmentReturn, turns }: JudgedEpisode): Judgement {
  const turnRewards = turns.flatMap(({ reward }, turn) =>
    reward === undefined ? [] : [{ turn, value: reward }],
  );
  return { value: environmentReturn, turnRewards };
}
