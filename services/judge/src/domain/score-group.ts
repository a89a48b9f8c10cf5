/**
 * From the episodes of a group and the run's group judges to scores.
 *
 * Each episode has been scored by the other judges already; what says nothing about the agent does not come here. A judge
 * that fails has failed for the whole group: there is no ranking of a part of it.
 */

import { describeError } from "@hone/core";
import type { JudgeContext } from "./judge.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import type { Panel } from "./panel.ts";
import { checkFinite, type DetailedScore } from "./score-episode.ts";

export type GroupVerdict =
  /** Of each episode, in their order, the scores of all group judges. */
  | { readonly kind: "scored"; readonly scores: readonly (readonly DetailedScore[])[] }
  | { readonly kind: "failed"; readonly reason: string };

/** @param episodes at least two. */
export async function scoreGroup(
  episodes: readonly JudgedEpisode[],
  panel: Panel,
  context: JudgeContext,
): Promise<GroupVerdict> {
  const scores = episodes.map((): DetailedScore[] => []);
  for (const { name, weight, judge, isFor } of panel.groupJudges) {
    if (!episodes.every(isFor)) continue;
    try {
      const words = await judge(episodes, context);
      for (const [index, word] of words.entries()) {
        checkFinite(name, word);
        const { value, metrics = {}, turnRewards = [] } = word;
        scores[index]!.push({ judge: name, weight, value, metrics, turnRewards });
      }
    } catch (error) {
      return { kind: "failed", reason: `the judge "${name}" failed: ${describeError(error)}` };
    }
  }
  return { kind: "scored", scores };
}
