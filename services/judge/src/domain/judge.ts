/** The type of a judge, and what it returns. */

import type { TurnReward } from "@hone/rl";
import type { JudgedEpisode } from "./judged-episode.ts";

/** A judge's result for an episode. */
export interface Judgement {
  /** The score of the whole episode; finite. */
  readonly value: number;
  /** Additional numbers, finite. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Rewards of single turns; the value does not include them. */
  readonly turnRewards?: readonly TurnReward[];
  /** Values for single roles, in place of `value`. */
  readonly roleValues?: Readonly<Record<string, number>>;
  /** An explanation in words, for people. Its beginning is stored with the score. */
  readonly reason?: string;
}

/** What a judge gets besides the episode. */
export interface JudgeContext {
  /** Aborts when the result is not needed any more. */
  readonly signal: AbortSignal;
}

/**
 * Scores one episode. A judge that is a rule is a pure function: the same episode always gets the same result. A number
 * stands for a judgement with this value and nothing else.
 * @throws {JudgeError} when it cannot score the episode. This and any other error is an infrastructure failure and not a zero.
 */
export type Judge = (
  episode: JudgedEpisode,
  context: JudgeContext,
) => number | Judgement | Promise<number | Judgement>;
