/**
 * From an episode and the run's judges to scores and a reward.
 *
 * J1: an outcome that says nothing about the agent passes through unscored, with reward 0 that nobody may read.
 * J2: a judge that cannot judge makes the episode `infra_failed`; it never becomes a zero.
 * J3: the same episode and judges give the same scores, whoever scores and however often.
 */

import type { JudgeConfig } from "@hone/config";
import { describeError, isScorable, Outcome } from "@hone/core";
import { type Score, weightedSum } from "@hone/rl";
import { JudgeError } from "../errors.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { JUDGES, type JudgeKind } from "./registry.ts";

/** What became of an episode. */
export type Verdict =
  | { readonly kind: "scored"; readonly scores: readonly Score[]; readonly reward: number }
  /** It is left out (J1). */
  | { readonly kind: "passed" }
  /** A judge failed (J2): its reason, for people. */
  | { readonly kind: "failed"; readonly judge: string; readonly reason: string };

/** Applies the judges in their order. */
export function scoreEpisode(episode: JudgedEpisode, judges: readonly JudgeConfig[]): Verdict {
  if (!isScorable(episode.outcome)) return { kind: "passed" };
  const scores: Score[] = [];
  for (const { kind, weight } of judges) {
    const value = tryJudge(kind, episode);
    if (typeof value !== "number") return { kind: "failed", judge: kind, reason: value.reason };
    scores.push({ judge: kind, weight, value });
  }
  const reward = weightedSum(scores);
  if (Number.isFinite(reward)) return { kind: "scored", scores, reward };
  const reason = `Cannot score as a reward must be finite: current value is ${reward}`;
  return { kind: "failed", judge: "", reason };
}

function tryJudge(kind: JudgeKind, episode: JudgedEpisode): number | { reason: string } {
  try {
    const value = JUDGES[kind](episode);
    if (!Number.isFinite(value)) {
      throw new JudgeError(kind, `Cannot score as a score must be finite: current value is ${value}`);
    }
    return value;
  } catch (error) {
    return { reason: `the judge "${kind}" failed: ${describeError(error)}` };
  }
}

/** The outcome under which a verdict travels on. */
export function outcomeOf(episode: JudgedEpisode, verdict: Verdict): Outcome {
  return verdict.kind === "failed" ? Outcome.infraFailed : episode.outcome;
}
