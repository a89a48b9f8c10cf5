/** What judges read of an episode, free of wire types. */

import type { Outcome } from "@hone/core";

export interface JudgedEpisode {
  readonly outcome: Outcome;
  /** Sum of the rewards that the environment gave. */
  readonly environmentReturn: number;
  readonly turns: readonly JudgedTurn[];
}

/** One model call. */
export interface JudgedTurn {
  /** What the environment or the agent said of the turn, such as `{ action: "Left", isValid: true }`. */
  readonly info: Readonly<Record<string, unknown>>;
}
