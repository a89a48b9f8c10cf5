/** Answers `hone.v1.judge.score`: judges stored episodes again, or with other judges. */

import { create } from "@bufbuild/protobuf";
import { describeError, RetryableError } from "@hone/core";
import { type ScoreReply, ScoreReplySchema, type ScoreRequest } from "@hone/proto-gen/judge";
import type { JudgeContext } from "../domain/judge.ts";
import { judgeEpisode } from "./judge-episode.ts";
import type { RunPanels } from "./run-panels.ts";

/** Never rejects: the reply holds the error, and whether asking again may help. */
export async function answerScore(
  request: ScoreRequest,
  panels: Pick<RunPanels, "of" | "ofRun">,
  context: JudgeContext,
): Promise<ScoreReply> {
  try {
    const { judgesJson, episodes } = request;
    // If these judges cannot be made, the whole request is refused, as each episode would fail in the same way.
    if (judgesJson !== undefined) await panels.of(judgesJson);
    const scored = await Promise.all(
      episodes.map((episode) =>
        judgeEpisode(episode, context, () =>
          judgesJson === undefined
            ? panels.ofRun(episode.runId, episode.task?.part ?? "")
            : panels.of(judgesJson),
        ),
      ),
    );
    return create(ScoreReplySchema, { scored });
  } catch (error) {
    return create(ScoreReplySchema, {
      error: describeError(error),
      isRetryable: error instanceof RetryableError,
    });
  }
}
