/** The judge `math`: whether the last boxed answer equals the row's ground truth. */

import { scoreMath } from "@hone/rl";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

export function mathJudge({ kind }: ConfigOf<"math">): Judge {
  return function judgeMath(episode) {
    return scoreMath(solutionOf(episode), groundTruthOf(episode, kind));
  };
}
