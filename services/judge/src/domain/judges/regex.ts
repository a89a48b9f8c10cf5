/** The judge `regex`: whether the answer matches a pattern. */

import { BoundedPattern } from "@hone/config";
import { inTime } from "../in-time.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

export function regexJudge({ kind, pattern, flags }: ConfigOf<"regex">): Judge {
  const compiled = new BoundedPattern(pattern, flags);
  return function judgeRegex(episode) {
    return inTime(kind, () => compiled.matches(solutionOf(episode))).length > 0 ? 1 : 0;
  };
}
