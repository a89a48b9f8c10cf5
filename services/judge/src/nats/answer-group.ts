/** Answers `hone.v1.judge.group`: compares the episodes of a group with each other. */

import { create } from "@bufbuild/protobuf";
import { describeError, RetryableError, TerminalError } from "@hone/core";
import { type Bus, episodeReader, readMessages, StreamName } from "@hone/messaging";
import {
  EpisodeScoresSchema,
  type GroupReply,
  GroupReplySchema,
  type GroupRequest,
} from "@hone/proto-gen/judge";
import type { JudgeContext } from "../domain/judge.ts";
import { scoreGroup } from "../domain/score-group.ts";
import { decodeEpisode } from "./decode-episode.ts";
import { scoreToWire } from "./judge-episode.ts";
import type { Panels } from "./panels.ts";

/** The limit of groups in run files. */
const MAX_GROUP_SIZE = 1_024;

/** Never rejects: an error is put into the reply. */
export async function answerGroup(
  bus: Bus,
  request: GroupRequest,
  panels: Panels,
  context: JudgeContext,
): Promise<GroupReply> {
  try {
    const { sequences, judgesJson, runId } = request;
    if (sequences.length < 2 || sequences.length > MAX_GROUP_SIZE) {
      throw new TerminalError(
        "GROUP_SIZE",
        `a group of ${sequences.length} episodes cannot be compared; it must have 2 to ${MAX_GROUP_SIZE}`,
      );
    }
    const panel = await panels.of(judgesJson);
    const scored = await readMessages(bus, StreamName.episodes, sequences.map(Number), episodeReader(bus));
    const tasks = new Set(
      scored.map(({ episode }) => `${episode?.slot?.split}.${episode?.slot?.step}.${episode?.slot?.task}`),
    );
    // After the stream was made again, other episodes have these positions.
    if (tasks.size > 1 || scored.some(({ episode }) => episode?.runId !== runId)) {
      throw new TerminalError(
        "OTHER_GROUP",
        `the group cannot be compared: its episodes must be of one task of ${runId.slice(0, 80)}, and they are not`,
      );
    }
    const episodes = scored.flatMap(({ episode }) => (episode === undefined ? [] : [decodeEpisode(episode)]));
    const verdict = await scoreGroup(episodes, panel, context);
    if (verdict.kind === "failed") return create(GroupReplySchema, { error: verdict.reason });
    return create(GroupReplySchema, {
      episodes: verdict.scores.map((scores) =>
        create(EpisodeScoresSchema, { scores: scores.map(scoreToWire) }),
      ),
    });
  } catch (error) {
    return create(GroupReplySchema, {
      error: describeError(error),
      isRetryable: error instanceof RetryableError,
    });
  }
}
