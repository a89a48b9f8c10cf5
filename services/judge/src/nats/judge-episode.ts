/** One episode of the wire, judged: the path that the stream and the request share. */

import { create } from "@bufbuild/protobuf";
import { describeError, Outcome } from "@hone/core";
import { outcomeToWire } from "@hone/messaging";
import {
  type Episode,
  type ScoredEpisode,
  ScoredEpisodeSchema,
  ScoreSchema,
  TurnRewardSchema,
} from "@hone/proto-gen/rollout";
import type { JudgeContext } from "../domain/judge.ts";
import type { Panel } from "../domain/panel.ts";
import { type DetailedScore, outcomeOf, scoreEpisode } from "../domain/score-episode.ts";
import { decodeEpisode } from "./decode-episode.ts";
import type { Panels } from "./panels.ts";

/**
 * Applies the judges. What cannot be judged comes back as `infra_failed` with the reason; it never rejects for it.
 * @param judgesJson undefined = the judges that the episode carries.
 * @throws {TerminalError} when the episode's outcome is none that this version knows.
 */
export async function judgeEpisode(
  episode: Episode,
  panels: Panels,
  context: JudgeContext,
  judgesJson = episode.judgesJson,
): Promise<ScoredEpisode> {
  const judged = decodeEpisode(episode);
  let panel: Panel;
  try {
    panel = await panels.of(judgesJson);
  } catch (error) {
    // Judges that cannot be made fail like judges that cannot judge; what they would not judge passes all the same.
    const verdict = await scoreEpisode(judged, { judges: [], groupJudges: [] }, context);
    return verdict.kind === "passed"
      ? create(ScoredEpisodeSchema, { episode })
      : failed(episode, Outcome.infraFailed, describeError(error));
  }
  const verdict = await scoreEpisode(judged, panel, context);
  switch (verdict.kind) {
    case "failed":
      return failed(episode, outcomeOf(judged, verdict), verdict.reason);
    case "passed":
      return create(ScoredEpisodeSchema, { episode });
    case "scored": {
      const scores = verdict.scores.map(scoreToWire);
      return create(ScoredEpisodeSchema, { episode, reward: verdict.reward, scores });
    }
  }
}

function failed(episode: Episode, outcome: Outcome, reason: string): ScoredEpisode {
  return create(ScoredEpisodeSchema, {
    episode: { ...episode, outcome: outcomeToWire(outcome), reason },
  });
}

export function scoreToWire({ judge, weight, value, metrics, turnRewards }: DetailedScore) {
  return create(ScoreSchema, {
    judge,
    weight,
    value,
    metrics,
    turnRewards: turnRewards.map((reward) => create(TurnRewardSchema, reward)),
  });
}
