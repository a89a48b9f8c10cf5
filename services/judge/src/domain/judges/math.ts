/** The judge `math`: whether the last boxed answer is the row's. */

import { scoreMath } from "@hone/rl";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import { solutionOf } from "../judged-episode.ts";
import type { ConfigOf } from "../registry.ts";

export function mathJudge({ kind }: ConfigOf<"math">): Judge {
  return function judgeMath(episode) {
    return scoreMath(solutionOf(episode), groundTruthOf(episode, kind));
  };
}
