/**
 * Scores the episodes of a group with the run's group judges.
 *
 * The other judges have scored each episode already, and episodes whose outcome says nothing about the agent are not given to
 * it. When a judge fails, it has failed for the whole group, as a part of a group cannot be ranked.
 */

import { describeError } from "@hone/core";
import type { JudgeContext } from "./judge.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import type { Panel } from "./panel.ts";
import { checkFinite, type DetailedScore } from "./score-episode.ts";

export type GroupVerdict =
  /** The scores of all group judges for each episode, in the order of the episodes. */
  | { readonly kind: "scored"; readonly scores: readonly (readonly DetailedScore[])[] }
  | { readonly kind: "failed"; readonly reason: string };

/** @param episodes at least two. */
export async function scoreGroup(
  episodes: readonly JudgedEpisode[],
  panel: Panel,
  context: JudgeContext,
): Promise<GroupVerdict> {
  const scores = episodes.map((): DetailedScore[] => []);
  for (const { name, weight, roles, judge, isFor } of panel.groupJudges) {
    if (!episodes.every(isFor)) continue;
    try {
      const words = await judge(episodes, context);
      for (const [index, word] of words.entries()) {
        checkFinite(name, word);
        const { value, metrics = {}, turnRewards = [], reason } = word;
        const said = reason === undefined ? {} : { reason };
        scores[index]!.push({
          judge: name,
          weight,
          value,
          metrics,
          turnRewards,
          ...said,
          ...(roles && { roles }),
        });
      }
    } catch (error) {
      return { kind: "failed", reason: `the judge "${name}" failed: ${describeError(error)}` };
    }
  }
  return { kind: "scored", scores };
}
