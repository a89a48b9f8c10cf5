/** The judge `exact`: whether the answer equals the row's ground truth, ignoring white space around it. */

import { BoundedPattern } from "@hone/config";
import { groundTruthOf } from "../ground-truth.ts";
import { inTime } from "../in-time.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

export function exactJudge({ kind, pattern, flags, ignoreCase }: ConfigOf<"exact">): Judge {
  const extract = pattern === undefined ? undefined : new BoundedPattern(pattern, flags);
  const normal = (text: string) => (ignoreCase ? text.trim().toLowerCase() : text.trim());
  return function judgeExact(episode) {
    const wanted = groundTruthOf(episode, kind);
    const answer = inTime(kind, () => answerIn(solutionOf(episode), extract));
    return answer !== undefined && normal(answer) === normal(wanted) ? 1 : 0;
  };
}

/** The first group of the pattern's last match, or the whole match where it has no group; undefined where nothing matches. */
function answerIn(text: string, pattern: BoundedPattern | undefined): string | undefined {
  if (pattern === undefined) return text;
  const match = pattern.matches(text).at(-1);
  return match === undefined || match.length === 1 ? match?.[0] : match[1];
}
