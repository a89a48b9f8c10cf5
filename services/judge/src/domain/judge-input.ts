/** What a user's own judge is told of an episode. Its names are those of the scorers that users have already. */

import { type JudgedEpisode, solutionOf } from "./judged-episode.ts";

export interface ScoreInput {
  /** `data_source` of the row; empty where there is none. */
  readonly dataSource: string;
  /** Text of the last model call. */
  readonly solution: string;
  /** `reward_model.ground_truth` as it stands in the row; null where there is none. */
  readonly groundTruth: unknown;
  readonly extraInfo: Readonly<Record<string, unknown>>;
  /** What the agent returned, such as its final answer. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Every model call, in order. */
  readonly turns: readonly { readonly prompt: string; readonly response: string }[];
  /** Sum of the rewards that the environment gave. */
  readonly environmentReturn: number;
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
  };
}
