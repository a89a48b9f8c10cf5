/** What judges read of an episode, from the wire's words to the domain's. */

import { parseJson } from "@hone/core";
import { outcomeFromWire } from "@hone/messaging";
import type { Episode } from "@hone/proto-gen/rollout";
import type { JudgedEpisode, JudgedRow } from "../domain/judged-episode.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** @throws {TerminalError} when the episode's outcome is none that this version knows. */
export function decodeEpisode(episode: Episode): JudgedEpisode {
  return {
    outcome: outcomeFromWire(episode.outcome),
    environmentReturn: episode.environmentReturn,
    turns: episode.turns.map(({ promptText, responseText, finishReason, infoJson }) => ({
      promptText,
      responseText,
      finishReason,
      info: objectOf(infoJson),
    })),
    row: rowOf(episode.task?.rowJson ?? ""),
    metadata: objectOf(episode.metadataJson),
  };
}

function rowOf(json: string): JudgedRow | undefined {
  if (json === "") return undefined;
  const row = objectOf(json);
  const { data_source: dataSource, reward_model: rewardModel, extra_info: extraInfo } = row;
  return {
    dataSource: typeof dataSource === "string" ? dataSource : "",
    groundTruth: isObject(rewardModel) ? rewardModel.ground_truth : undefined,
    extraInfo: isObject(extraInfo) ? extraInfo : {},
  };
}

/** What is no readable object says nothing. */
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

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
