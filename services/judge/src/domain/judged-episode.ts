/** What judges read of an episode, free of wire types. */

import type { Outcome } from "@hone/core";

export type JsonObject = Readonly<Record<string, unknown>>;

export interface JudgedEpisode {
  readonly outcome: Outcome;
  /** Sum of the rewards that the environment gave. */
  readonly environmentReturn: number;
  readonly turns: readonly JudgedTurn[];
  /** Columns of the dataset row; undefined where the task is an environment. */
  readonly row: JudgedRow | undefined;
  /** What the agent returned, such as its final answer. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** One model call. */
export interface JudgedTurn {
  /** What the model was shown since the turn before. */
  readonly promptText: string;
  readonly responseText: string;
  /** "stop", "length", "stop_text" or "aborted". */
  readonly finishReason: string;
  /** Given by the environment or a tool; undefined = none was given. */
  readonly reward?: number | undefined;
  /** What the environment or the agent said of the turn, such as `{ action: "Left", isValid: true }`. */
  readonly info: Readonly<Record<string, unknown>>;
}

/** The columns of a row that judges know by name. */
export interface JudgedRow {
  /** `data_source`; empty where the row has none. */
  readonly dataSource: string;
  /** `prompt` as it stands in the row: a text or messages; undefined where the row has none. */
  readonly prompt?: unknown;
  /** `reward_model.ground_truth` as it stands in the row; undefined where the row has none. */
  readonly groundTruth: unknown;
  /** `extra_info`; empty where the row has none. */
  readonly extraInfo: Readonly<Record<string, unknown>>;
}

/**
 * What is judged: the text that the agent returned as its `solution`, else its last word, the text of the last model call;
 * empty for an episode without one.
 */
export function solutionOf({ metadata, turns }: JudgedEpisode): string {
  if (typeof metadata.solution === "string") return metadata.solution;
  return turns.at(-1)?.responseText ?? "";
}

/** The columns of a row that judges know, out of all that it has. */
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
