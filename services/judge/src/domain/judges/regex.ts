/** The judge `regex`: whether the answer holds what a pattern describes. */

import { boundedPattern } from "../bounded-pattern.ts";
import type { Judge } from "../judge.ts";
import { solutionOf } from "../judged-episode.ts";
import type { ConfigOf } from "../registry.ts";

export function regexJudge({ kind, pattern, flags }: ConfigOf<"regex">): Judge {
  const compiled = boundedPattern(kind, pattern, flags);
  return function judgeRegex(episode) {
    return compiled.matches(solutionOf(episode)).length > 0 ? 1 : 0;
  };
}
