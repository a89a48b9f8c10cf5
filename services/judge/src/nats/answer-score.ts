/** Answers `hone.v1.judge.score`: stored episodes, judged again or by other judges. */

import { create } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import { type ScoreReply, ScoreReplySchema, type ScoreRequest } from "@hone/proto-gen/judge";
import type { JudgeContext } from "../domain/judge.ts";
import { judgeEpisode } from "./judge-episode.ts";
import type { Panels } from "./panels.ts";

/** Never rejects: what is wrong with the request is said in the reply, and asking again would not help. */
export async function answerScore(
  request: ScoreRequest,
  panels: Panels,
  context: JudgeContext,
): Promise<ScoreReply> {
  try {
    const { judgesJson, episodes } = request;
    // Refused as a whole: each episode would fail alike.
    if (judgesJson !== undefined) await panels.of(judgesJson);
    const scored = await Promise.all(
      episodes.map((episode) => judgeEpisode(episode, panels, context, judgesJson)),
    );
    return create(ScoreReplySchema, { scored });
  } catch (error) {
    return create(ScoreReplySchema, { error: describeError(error), isRetryable: false });
  }
}
