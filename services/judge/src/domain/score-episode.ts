/**
 * Scores an episode with the run's judges, and sums up the reward.
 *
 * J1: an episode whose outcome says nothing about the agent gets no score; its reward of 0 must not be used.
 * J2: when a judge fails, the episode becomes `infra_failed` and gets no zero. The same holds for an episode that no judge is
 *     for.
 * J3: the same episode and rules always give the same scores.
 * J4: an episode that needs scores which are given later has no reward yet. Where nobody can give them, it cannot be judged.
 */

import { describeError, isScorable, Outcome } from "@hone/core";
import { type Score, type TurnReward, weightedSum } from "@hone/rl";
import { JudgeError } from "../errors.ts";
import type { Judge, JudgeContext, Judgement } from "./judge.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import type { Panel, PanelMember } from "./panel.ts";

/** A score with the other results of its judge. */
export interface DetailedScore extends Score {
  readonly metrics: Readonly<Record<string, number>>;
  readonly turnRewards: readonly TurnReward[];
  /** See {@link Judgement}; absent where the judge gives none. */
  readonly reason?: string;
}

/** The result of judging an episode. */
export type Verdict =
  | { readonly kind: "scored"; readonly scores: readonly DetailedScore[]; readonly reward: number }
  /** It gets no score (J1). */
  | { readonly kind: "passed" }
  /** A judge failed (J2). */
  | { readonly kind: "failed"; readonly judge: string; readonly reason: string };

/** A score that is given later. */
export interface AwaitedScore {
  readonly judge: string;
  readonly weight: number;
  /** Its place among all scores of the episode, which are in the order of the run file. */
  readonly place: number;
  /** See {@link Score.roles}. */
  readonly roles: readonly string[] | undefined;
  /** The value if nobody gives it in time. */
  readonly fallback: number | undefined;
}

/** What is known of an episode as soon as it has ended: its verdict, or the scores so far and those that are awaited (J4). */
export type FirstVerdict =
  | Verdict
  | {
      readonly kind: "awaits";
      readonly scores: readonly DetailedScore[];
      readonly awaited: readonly AwaitedScore[];
    };

/** Asks all judges at once; the scores are in the order of the run file. An episode that needs later scores fails (J4). */
export async function scoreEpisode(
  episode: JudgedEpisode,
  panel: Panel,
  context: JudgeContext,
): Promise<Verdict> {
  const verdict = await scoreFirst(episode, panel, context);
  if (verdict.kind !== "awaits") return verdict;
  const judge = verdict.awaited[0]?.judge ?? "";
  const reason = `the judge "${judge}" waits for a reward that is given after a rollout of a run has ended; here nobody gives one`;
  return { kind: "failed", judge, reason };
}

/** {@link scoreEpisode} for an episode that may wait for later scores. */
export async function scoreFirst(
  episode: JudgedEpisode,
  panel: Panel,
  context: JudgeContext,
): Promise<FirstVerdict> {
  if (!isScorable(episode.outcome)) return { kind: "passed" };
  const asked = panel.judges.filter((member) => member.isFor(episode));
  const later = panel.laterJudges.filter((member) => member.isFor(episode));
  // An episode that only group judges are for gets its reward from them.
  if (asked.length === 0 && later.length === 0 && !panel.groupJudges.some((member) => member.isFor(episode)))
    return noJudge(episode);
  const words = await Promise.all(asked.map((member) => tryJudge(member, episode, context)));
  const scores: DetailedScore[] = [];
  for (const [index, word] of words.entries()) {
    const { name, weight, roles } = asked[index]!;
    if ("failure" in word) return { kind: "failed", judge: name, reason: word.failure };
    scores.push({
      judge: name,
      weight,
      value: word.value,
      metrics: word.metrics ?? {},
      turnRewards: word.turnRewards ?? [],
      ...(roles !== undefined && { roles }),
      ...(word.roleValues !== undefined && { roleValues: word.roleValues }),
      ...(word.reason !== undefined && { reason: word.reason }),
    });
  }
  if (later.length > 0) {
    const awaited = later.map(({ name, weight, roles, judgesBefore, fallback }, index) => {
      const isBefore = (member: PanelMember<Judge>) => panel.judges.indexOf(member) < judgesBefore;
      return { judge: name, weight, roles, fallback, place: asked.filter(isBefore).length + index };
    });
    return { kind: "awaits", scores, awaited };
  }
  return totalOf(scores);
}

/** Sums up the scores of an episode, all of which are there. */
export function totalOf<One extends Score>(
  scores: readonly One[],
):
  | { readonly kind: "scored"; readonly scores: readonly One[]; readonly reward: number }
  | Extract<Verdict, { kind: "failed" }> {
  const reward = weightedSum(scores);
  if (Number.isFinite(reward)) return { kind: "scored", scores, reward };
  const reason = `the weighted sum of the scores is ${reward}; a reward must be finite`;
  return { kind: "failed", judge: "", reason };
}

function noJudge({ row }: JudgedEpisode): Verdict {
  const reason = `no judge of the run is for the row's data_source ${JSON.stringify(row?.dataSource ?? "")}; add one whose \`dataSources\` names it`;
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

/** @throws {JudgeError} that names the number which is not finite. */
export function checkFinite(
  name: string,
  { value, metrics = {}, turnRewards = [], roleValues = {} }: Judgement,
): void {
  const figures: [string, number][] = [
    ["a score", value],
    ...Object.entries(metrics).map(([key, figure]): [string, number] => [`the metric "${key}"`, figure]),
    ...Object.entries(roleValues).map(([role, figure]): [string, number] => [`the score of ${role}`, figure]),
    ...turnRewards.map((turn): [string, number] => [`the reward of turn ${turn.turn}`, turn.value]),
  ];
  const broken = figures.find(([, figure]) => !Number.isFinite(figure));
  if (broken === undefined) return;
  throw new JudgeError(name, `${broken[0]} is ${broken[1]}; it must be a finite number`);
}

/** The outcome with which the episode is published. */
export function outcomeOf(episode: JudgedEpisode, verdict: Verdict): Outcome {
  return verdict.kind === "failed" ? Outcome.infraFailed : episode.outcome;
}
