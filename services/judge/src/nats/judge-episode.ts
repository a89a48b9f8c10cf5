/** Judges one episode, for the stream and for requests. */

import { create } from "@bufbuild/protobuf";
import { describeError, Outcome } from "@hone/core";
import { BusUnavailableError, outcomeToWire } from "@hone/messaging";
import {
  type Episode,
  type ScoredEpisode,
  ScoredEpisodeSchema,
  ScoreSchema,
  TurnRewardSchema,
} from "@hone/proto-gen/rollout";
import type { JudgeContext } from "../domain/judge.ts";
import type { JudgedEpisode } from "../domain/judged-episode.ts";
import type { Panel } from "../domain/panel.ts";
import {
  type AwaitedScore,
  type DetailedScore,
  type FirstVerdict,
  outcomeOf,
  scoreEpisode,
  scoreFirst,
} from "../domain/score-episode.ts";
import { UnknownRunError } from "../errors.ts";
import { decodeEpisode } from "./decode-episode.ts";

const NO_JUDGES: Panel = { judges: [], groupJudges: [], laterJudges: [] };

/** The scores so far of an episode that waits for others. */
export interface AwaitingEpisode {
  readonly kind: "awaits";
  readonly scores: readonly DetailedScore[];
  readonly awaited: readonly AwaitedScore[];
}

/**
 * Applies the judges. An episode that cannot be judged becomes `infra_failed` with the reason; the promise is not rejected.
 * @param panelOf gives the judges: those of the episode's run, or others that were requested. The episode does not choose them.
 * @throws {TerminalError} when the episode's outcome, or why a turn ended, is unknown.
 * @throws {BusUnavailableError | UnknownRunError} when the run's judges cannot be read now.
 */
export async function judgeEpisode(
  episode: Episode,
  context: JudgeContext,
  panelOf: () => Promise<Panel>,
): Promise<ScoredEpisode> {
  const judged = await judgeFirst(episode, context, panelOf, scoreEpisode);
  if ("kind" in judged) throw new TypeError("an episode that is judged at once waits for nothing");
  return judged;
}

/** {@link judgeEpisode} for an episode of a run, which may wait for rewards that are given later. */
export async function judgeFirst(
  episode: Episode,
  context: JudgeContext,
  panelOf: () => Promise<Panel>,
  score: (episode: JudgedEpisode, panel: Panel, context: JudgeContext) => Promise<FirstVerdict> = scoreFirst,
): Promise<ScoredEpisode | AwaitingEpisode> {
  const judged = decodeEpisode(episode);
  let panel: Panel;
  try {
    panel = await panelOf();
  } catch (error) {
    // The episode is delivered again.
    if (error instanceof BusUnavailableError || error instanceof UnknownRunError) throw error;
    // Judges that cannot be made have failed. Episodes that would get no score anyway are published unchanged.
    const verdict = await scoreEpisode(judged, NO_JUDGES, context);
    return verdict.kind === "passed"
      ? create(ScoredEpisodeSchema, { episode })
      : failedEpisode(episode, Outcome.infraFailed, describeError(error));
  }
  const verdict = await score(judged, panel, context);
  switch (verdict.kind) {
    case "failed":
      return failedEpisode(episode, outcomeOf(judged, verdict), verdict.reason);
    case "passed":
      return create(ScoredEpisodeSchema, { episode });
    case "awaits":
      return verdict;
    case "scored": {
      const scores = verdict.scores.map(scoreToWire);
      return create(ScoredEpisodeSchema, { episode, reward: verdict.reward, scores });
    }
  }
}

export function failedEpisode(episode: Episode, outcome: Outcome, reason: string): ScoredEpisode {
  return create(ScoredEpisodeSchema, {
    episode: { ...episode, outcome: outcomeToWire(outcome), reason },
  });
}

/** As much as a reward that comes later may say. */
const MAX_REASON_CHARACTERS = 2_000;

export function scoreToWire(score: DetailedScore) {
  const { judge, weight, value, metrics, turnRewards, roles = [], roleValues = {}, reason = "" } = score;
  return create(ScoreSchema, {
    judge,
    weight,
    value,
    metrics,
    turnRewards: turnRewards.map((reward) => create(TurnRewardSchema, reward)),
    roles: [...roles],
    roleValues,
    // A text that ends in half of a pair of code units could not be encoded.
    reason: reason.slice(0, MAX_REASON_CHARACTERS).toWellFormed(),
  });
}
