/** Asks agent-rollout for the frames of an episode. */

import { type Bus, BusUnavailableError, request, subjects } from "@hone/messaging";
import { RenderReplySchema, RenderRequestSchema } from "@hone/proto-gen/rollout";
import type { AskForFrames } from "../domain/episode-frames.ts";

/** Longer than agent-rollout plays and closes an environment, so that its own reason arrives. */
const TIMEOUT_MS = 30_000;

export function askForFrames(bus: Bus): AskForFrames {
  return async function ask(message) {
    try {
      return await request(bus, subjects.rolloutRender(), RenderRequestSchema, message, RenderReplySchema, {
        timeoutMs: TIMEOUT_MS,
      });
    } catch (error) {
      if (error instanceof BusUnavailableError) return undefined;
      throw error;
    }
  };
}
