/** The judge `math_dapo`: 1 if the stated answer equals the row's ground truth, else -1. */

import { scoreMathDapo } from "@hone/rl";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

export function mathDapoJudge({ kind }: ConfigOf<"math_dapo">): Judge {
  return function judgeMathDapo(episode) {
    const { score, accuracy } = scoreMathDapo(solutionOf(episode), groundTruthOf(episode, kind));
    return { value: score, metrics: { acc: accuracy } };
  };
}
