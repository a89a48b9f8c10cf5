/**
 * From an episode and the run's judges to scores and a reward.
 *
 * J1: an outcome that says nothing about the agent passes through unscored, with reward 0 that nobody may read.
 * J2: a judge that cannot judge makes the episode `infra_failed`; it never becomes a zero. An episode that no judge is for
 *     has no reward either.
 * J3: the same episode and rules give the same scores, whoever scores and however often.
 */

import { describeError, isScorable, Outcome } from "@hone/core";
import { type Score, type TurnReward, weightedSum } from "@hone/rl";
import { JudgeError } from "../errors.ts";
import type { Judge, JudgeContext, Judgement } from "./judge.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import type { Panel, PanelMember } from "./panel.ts";

/** A score with what the judge said beside it. */
export interface DetailedScore extends Score {
  readonly metrics: Readonly<Record<string, number>>;
  readonly turnRewards: readonly TurnReward[];
  /** See {@link Judgement}; absent where the judge gives none. */
  readonly reason?: string;
}

/** What became of an episode. */
export type Verdict =
  | { readonly kind: "scored"; readonly scores: readonly DetailedScore[]; readonly reward: number }
  /** It is left out (J1). */
  | { readonly kind: "passed" }
  /** A judge failed (J2): its reason, for people. */
  | { readonly kind: "failed"; readonly judge: string; readonly reason: string };

/** Asks the judges at once; their scores keep the order of the run file. */
export async function scoreEpisode(
  episode: JudgedEpisode,
  panel: Panel,
  context: JudgeContext,
): Promise<Verdict> {
  if (!isScorable(episode.outcome)) return { kind: "passed" };
  const asked = panel.judges.filter((member) => member.isFor(episode));
  // What only its group is compared by has its reward from there.
  if (asked.length === 0 && !panel.groupJudges.some((member) => member.isFor(episode)))
    return noJudge(episode);
  const words = await Promise.all(asked.map((member) => tryJudge(member, episode, context)));
  const scores: DetailedScore[] = [];
  for (const [index, word] of words.entries()) {
    const { name, weight } = asked[index]!;
    if ("failure" in word) return { kind: "failed", judge: name, reason: word.failure };
    scores.push({
      judge: name,
      weight,
      value: word.value,
      metrics: word.metrics ?? {},
      turnRewards: word.turnRewards ?? [],
      ...(word.reason !== undefined && { reason: word.reason }),
    });
  }
  const reward = weightedSum(scores);
  if (Number.isFinite(reward)) return { kind: "scored", scores, reward };
  const reason = `Cannot score as a reward must be finite: current value is ${reward}`;
  return { kind: "failed", judge: "", reason };
}

function noJudge({ row }: JudgedEpisode): Verdict {
  const reason = `Cannot score as one of the run's judges must be for the row's data_source: current value is ${JSON.stringify(row?.dataSource ?? "")}`;
  return { kind: "failed", judge: "", reason };
}

async function tryJudge(
  { name, judge }: PanelMember<Judge>,
  episode: JudgedEpisode,
  context: JudgeContext,
): Promise<Judgement | { failure: string }> {
  try {
    const word = await judge(episode, context);
    const judgement = typeof word === "number" ? { value: word } : word;
    checkFinite(name, judgement);
    return judgement;
  } catch (error) {
    return { failure: `the judge "${name}" failed: ${describeError(error)}` };
  }
}

/** @throws {JudgeError} naming the figure that is none. */
export function checkFinite(name: string, { value, metrics = {}, turnRewards = [] }: Judgement): void {
  const figures: [string, number][] = [
    ["a score", value],
    ...Object.entries(metrics).map(([key, figure]): [string, number] => [`the figure "${key}"`, figure]),
    ...turnRewards.map((turn): [string, number] => [`the reward of turn ${turn.turn}`, turn.value]),
  ];
  const broken = figures.find(([, figure]) => !Number.isFinite(figure));
  if (broken === undefined) return;
  throw new JudgeError(
    name,
    `Cannot score as ${broken[0]} must be a finite number: current value is ${broken[1]}`,
  );
}

/** The outcome under which a verdict travels on. */
export function outcomeOf(episode: JudgedEpisode, verdict: Verdict): Outcome {
  return verdict.kind === "failed" ? Outcome.infraFailed : episode.outcome;
}
