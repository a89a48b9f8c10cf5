/** The judge `environment`: the episode's return, and each turn's reward from the environment or a tool. */

import type { Judgement } from "../judge.ts";
import type { JudgedEpisode } from "../judged-episode.ts";

/** @returns the sum of the environment's rewards, including format penalties, and what the agent says that single roles earned. */
export function judgeEnvironment({ environmentReturn, roleRewards, turns }: JudgedEpisode): Judgement {
  const turnRewards = turns.flatMap(({ reward }, turn) =>
    reward === undefined ? [] : [{ turn, value: reward }],
  );
  const isOfRoles = Object.keys(roleRewards).length > 0;
  return { value: environmentReturn, turnRewards, ...(isOfRoles && { roleValues: roleRewards }) };
}
