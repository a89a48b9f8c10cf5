/** The judge `gsm8k`: whether the answer's number equals the row's ground truth. */

import { scoreGsm8k } from "@hone/rl";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

export function gsm8kJudge({ kind, method }: ConfigOf<"gsm8k">): Judge {
  return function judgeGsm8k(episode) {
    return scoreGsm8k(solutionOf(episode), groundTruthOf(episode, kind), method);
  };
}
