/** What judges read of an episode, in types that do not depend on the wire. */

import type { Outcome } from "@hone/core";
import type { FinishReason } from "@hone/rl";

export type JsonObject = Readonly<Record<string, unknown>>;

export interface JudgedEpisode {
  readonly outcome: Outcome;
  /** Sum of the environment's rewards. */
  readonly environmentReturn: number;
  /** What the agent says that single roles earned; empty = it says nothing of roles. */
  readonly roleRewards: Readonly<Record<string, number>>;
  readonly turns: readonly JudgedTurn[];
  /** Columns of the dataset row; undefined where the task is an environment. */
  readonly row: JudgedRow | undefined;
  /** What the agent returned, such as its final answer. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** One model call. */
export interface JudgedTurn {
  /** What the model was shown since the previous turn. */
  readonly promptText: string;
  readonly responseText: string;
  readonly finishReason: FinishReason;
  /** Reward of the environment or a tool; undefined = none was given. */
  readonly reward?: number | undefined;
  /** What the environment or the agent reported about the turn, such as `{ action: "Left", isValid: true }`. */
  readonly info: Readonly<Record<string, unknown>>;
}

/** The columns of a row that judges use. */
export interface JudgedRow {
  /** `data_source`; empty where the row has none. */
  readonly dataSource: string;
  /** `prompt` of the row, a text or messages; undefined where the row has none. */
  readonly prompt?: unknown;
  /** `reward_model.ground_truth` of the row; undefined where the row has none. */
  readonly groundTruth: unknown;
  /** `extra_info`; empty where the row has none. */
  readonly extraInfo: Readonly<Record<string, unknown>>;
}

/**
 * The text that is judged: the text that the agent returned as its `solution`, or else the text of the last model call;
 * empty for an episode without turns.
 */
export function solutionOf({ metadata, turns }: JudgedEpisode): string {
  if (typeof metadata.solution === "string") return metadata.solution;
  return turns.at(-1)?.responseText ?? "";
}

/** Picks the columns that judges use from a row. */
export function judgedRowOf(row: JsonObject): JudgedRow {
  const { data_source: dataSource, prompt, reward_model: rewardModel, extra_info: extraInfo } = row;
  return {
    prompt,
    dataSource: typeof dataSource === "string" ? dataSource : "",
    groundTruth: isObject(rewardModel) ? rewardModel.ground_truth : undefined,
    extraInfo: isObject(extraInfo) ? extraInfo : {},
  };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
