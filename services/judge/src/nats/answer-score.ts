/** Answers `hone.v1.judge.score`: stored episodes, judged again or by other judges. */

import { create } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import { type ScoreReply, ScoreReplySchema, type ScoreRequest } from "@hone/proto-gen/judge";
import { decodeJudgesJson } from "./decode-judges.ts";
import { judgeEpisode } from "./judge-episode.ts";

/** Never throws: what is wrong with the request is said in the reply, and asking again would not help. */
export function answerScore(request: ScoreRequest): ScoreReply {
  try {
    const judges = request.judgesJson === undefined ? undefined : decodeJudgesJson(request.judgesJson);
    return create(ScoreReplySchema, {
      scored: request.episodes.map((episode) => judgeEpisode(episode, judges)),
    });
  } catch (error) {
    return create(ScoreReplySchema, { error: describeError(error), isRetryable: false });
  }
}
