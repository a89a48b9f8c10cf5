/**
 * A stored rollout as frames, which the page and the command line play one after another.
 *
 * F1: agent-rollout, which has the environments, plays the episode again with the recorded actions, and draws each state.
 * F2: where that is not possible or does not lead to the recorded states, each turn is a frame with what the model was shown, as it
 *     was recorded; a notice says why.
 */

import { create } from "@bufbuild/protobuf";
import {
  type Episode,
  type EpisodeFrame,
  type RenderReply,
  type RenderRequest,
  RenderRequestSchema,
  type Turn,
} from "@hone/proto-gen/rollout";
import { TurnInfo } from "@hone/rl";
import { jsonObjectOf } from "./run-event.ts";

export interface FrameView {
  /** The turn whose action led to it; null = none, it is the first. */
  readonly after: number | null;
  /** That action, as the environment was given it; null = not known. */
  readonly action: string | null;
  readonly reward: number | null;
  /** The state in words or symbols. */
  readonly text: string;
  /** At most one of the two. Users' code may have written the document, so it must be shown as an image only. */
  readonly svg?: string;
  /** A PNG file in Base64. */
  readonly png?: string;
}

export interface FramesView {
  /** Whether the frames are states of the environment (F1), or what was recorded (F2). */
  readonly source: "environment" | "record";
  /** What is missing and why, as sentences; empty = nothing is. */
  readonly notice: string;
  readonly frames: readonly FrameView[];
}

/** Asks agent-rollout; undefined = it does not answer. */
export type AskForFrames = (request: RenderRequest) => Promise<RenderReply | undefined>;

export async function episodeFrames(runId: string, episode: Episode, ask: AskForFrames): Promise<FramesView> {
  if ((episode.task?.environment ?? "") === "")
    return recordedFrames(episode, "The task has no environment.");
  const request = renderRequestOf(runId, episode);
  if (request.turns.length === 0) {
    const why =
      "No action is recorded with this rollout: its agent never acted, or an earlier release played it.";
    return recordedFrames(episode, why);
  }
  const reply = await ask(request);
  if (reply === undefined) {
    return recordedFrames(
      episode,
      "The episode could not be played again, as agent-rollout does not answer.",
    );
  }
  if (reply.frames.length === 0) return recordedFrames(episode, reply.problem);
  return { source: "environment", notice: reply.problem, frames: reply.frames.map(frameViewOf) };
}

function renderRequestOf(runId: string, { task, turns, environmentState }: Episode): RenderRequest {
  return create(RenderRequestSchema, {
    runId,
    ...(task !== undefined && { task }),
    turns: turns
      .filter(({ actions }) => actions.length > 0)
      .map((turn) => ({ index: turn.index, actions: actionsOf(turn), state: stateOf(turn) })),
    environmentState,
  });
}

function actionsOf({ actions, responseText }: Turn): string[] {
  return actions.map(({ text }) => text ?? responseText);
}

function stateOf({ infoJson }: Turn): string {
  const state = jsonObjectOf(infoJson)?.[TurnInfo.state];
  return typeof state === "string" ? state : "";
}

function frameViewOf({ turn, action, reward, observation, picture }: EpisodeFrame): FrameView {
  const cause =
    turn === undefined ? { after: null, action: null, reward: null } : { after: turn, action, reward };
  switch (picture.case) {
    case "text":
      return { ...cause, text: picture.value };
    case "svg":
      return { ...cause, text: observation, svg: picture.value };
    case "png":
      return { ...cause, text: observation, png: Buffer.from(picture.value).toString("base64") };
    case undefined:
      return { ...cause, text: observation };
  }
}

/** F2 */
function recordedFrames({ turns }: Episode, why: string): FramesView {
  const frames = turns.map((turn, position): FrameView => {
    const before = turns[position - 1];
    const actions = before === undefined ? [] : actionsOf(before);
    return {
      after: before?.index ?? null,
      action: actions.length === 0 ? null : actions.join(", "),
      reward: before?.reward ?? null,
      text: turn.promptText,
    };
  });
  return { source: "record", notice: `${why} Shown is what the model was shown in each turn.`, frames };
}
