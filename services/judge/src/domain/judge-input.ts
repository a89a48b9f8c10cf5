/** The input of a user's own judge. Its names are those of common scorers, which users may have already. */

import { type JudgedEpisode, solutionOf } from "./judged-episode.ts";

export interface ScoreInput {
  /** `data_source` of the row; empty where there is none. */
  readonly dataSource: string;
  /** Text of the last model call. */
  readonly solution: string;
  /** `reward_model.ground_truth` of the row; null where there is none. */
  readonly groundTruth: unknown;
  readonly extraInfo: Readonly<Record<string, unknown>>;
  /** What the agent returned, such as its final answer. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** All model calls, in order. */
  readonly turns: readonly { readonly prompt: string; readonly response: string }[];
  /** Sum of the environment's rewards. */
  readonly environmentReturn: number;
  /** What the agent says that single roles earned; empty = it says nothing of roles. */
  readonly roleRewards: Readonly<Record<string, number>>;
}

export function scoreInputOf(episode: JudgedEpisode): ScoreInput {
  return {
    dataSource: episode.row?.dataSource ?? "",
    solution: solutionOf(episode),
    groundTruth: episode.row?.groundTruth ?? null,
    extraInfo: episode.row?.extraInfo ?? {},
    metadata: episode.metadata,
    turns: episode.turns.map(({ promptText, responseText }) => ({
      prompt: promptText,
      response: responseText,
    })),
    environmentReturn: episode.environmentReturn,
    roleRewards: episode.roleRewards,
  };
}
