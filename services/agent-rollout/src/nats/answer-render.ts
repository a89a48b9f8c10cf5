/**
 * Answers `hone.v1.rollout.render`: the frames of a recorded episode, which is played again.
 *
 * W1: the modules of a run's own environments are those in the run's state, which only the trainer writes: whoever may ask for
 *     frames does not choose what code is loaded. They pass the gate as for a rollout.
 * W2: few episodes are replayed at once, as rollouts need the processor; further requests are refused in their answer.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { AgentModules, ModuleExports } from "@hone/agents";
import { modulesOf, type RunConfig } from "@hone/config";
import { describeError, parseJson, TerminalError, unreachable } from "@hone/core";
import type { Bucket } from "@hone/messaging";
import {
  type EpisodeFrameSchema,
  type RenderReply,
  RenderReplySchema,
  type RenderRequest,
} from "@hone/proto-gen/rollout";
import type { RunState } from "@hone/proto-gen/run";
import { environmentMaker, isRemote } from "../domain/environment-maker.ts";
import { type ReplayedFrame, replayEpisode } from "../domain/replay/replay-episode.ts";

export interface RenderParts {
  readonly modules: Pick<AgentModules, "load">;
  /** RUN_STATE (W1). */
  readonly states: Pick<Bucket<RunState>, "get">;
}

/** W2 */
const MAX_AT_ONCE = 4;

/** @returns a function that answers requests, and rejects only when the bus does not answer. */
export function renderer(parts: RenderParts): (request: RenderRequest) => Promise<RenderReply> {
  let running = 0;
  return async function answerRender(request) {
    if (running >= MAX_AT_ONCE) {
      return refusal(`agent-rollout plays ${MAX_AT_ONCE} other episodes at the moment; ask again in a while`);
    }
    running++;
    try {
      return await answer(request, parts);
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error;
      return refusal(describeError(error));
    } finally {
      running--;
    }
  };
}

async function answer(request: RenderRequest, { modules, states }: RenderParts): Promise<RenderReply> {
  const { runId, task, turns, environmentState } = request;
  if (task === undefined || task.environment === "") return refusal("its task has no environment");
  const seed = Number(task.environmentSeed);
  if (!Number.isSafeInteger(seed)) return refusal(`its seed ${task.environmentSeed} is not below 2^53`);
  const own = await ownExports(runId, states, modules);
  if (isRemote(task.environment, own)) return refusal("its environment acts outside of agent-rollout");
  const make = environmentMaker({ name: task.environment, configJson: task.environmentConfigJson }, own);
  const { frames, problem } = await replayEpisode(make, { seed, turns, endState: environmentState });
  return create(RenderReplySchema, { frames: frames.map(encodeFrame), problem });
}

/** What the run's own modules export; undefined if it has none, or its state is not kept any more. */
async function ownExports(
  runId: string,
  states: RenderParts["states"],
  modules: RenderParts["modules"],
): Promise<ModuleExports | undefined> {
  const state = (await states.get(runId))?.value;
  const { agent, dataset } = Object(parseJson(state?.configJson || "{}")) as Partial<RunConfig>;
  if (agent === undefined || dataset === undefined) return undefined;
  const paths = modulesOf({ agent, dataset });
  return paths.length === 0 ? undefined : (await modules.load(paths)).exports;
}

function encodeFrame({ turn, action, reward, observation, picture }: ReplayedFrame) {
  const frame = { action, reward, observation, ...(turn !== undefined && { turn }) };
  return { ...frame, ...(picture !== undefined && { picture: encodePicture(picture) }) };
}

function encodePicture(
  picture: NonNullable<ReplayedFrame["picture"]>,
): NonNullable<MessageInitShape<typeof EpisodeFrameSchema>["picture"]> {
  switch (picture.kind) {
    case "text":
      return { case: "text", value: picture.text };
    case "svg":
      return { case: "svg", value: picture.svg };
    case "png":
      return { case: "png", value: Uint8Array.from(picture.bytes) };
    default:
      return unreachable(picture);
  }
}

function refusal(reason: string): RenderReply {
  const problem = `The episode could not be played again: ${reason.replace(/\.$/, "")}.`;
  return create(RenderReplySchema, { problem });
}
