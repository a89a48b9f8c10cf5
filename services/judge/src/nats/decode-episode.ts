/** Decodes from the wire what judges read of an episode. */

import { parseJson } from "@hone/core";
import { outcomeFromWire } from "@hone/messaging";
import type { Episode } from "@hone/proto-gen/rollout";
import { readFinishReason } from "@hone/rl";
import {
  isObject,
  type JsonObject,
  type JudgedEpisode,
  type JudgedRow,
  judgedRowOf,
} from "../domain/judged-episode.ts";

/** @throws {TerminalError} when the episode's outcome, or why a turn ended, is unknown. */
export function decodeEpisode(episode: Episode): JudgedEpisode {
  return {
    outcome: outcomeFromWire(episode.outcome),
    environmentReturn: episode.environmentReturn,
    roleRewards: episode.roleRewards,
    turns: episode.turns.map(({ promptText, responseText, finishReason, infoJson, reward }) => ({
      promptText,
      responseText,
      finishReason: readFinishReason(finishReason),
      reward,
      info: objectOf(infoJson),
    })),
    row: rowOf(episode.task?.rowJson ?? ""),
    metadata: objectOf(episode.metadataJson),
  };
}

function rowOf(json: string): JudgedRow | undefined {
  return json === "" ? undefined : judgedRowOf(objectOf(json));
}

/** Reads a JSON object; anything else counts as an empty object. */
function objectOf(json: string): JsonObject {
  if (json === "") return {};
  try {
    const value: unknown = parseJson(json);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
