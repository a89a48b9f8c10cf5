/** What a judge is. */

import type { TurnReward } from "@hone/rl";
import type { JudgedEpisode } from "./judged-episode.ts";

/** A judge's word on an episode. */
export interface Judgement {
  /** Of the whole episode; finite. */
  readonly value: number;
  /** Figures beside it, finite. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Rewards of single turns; no part of the value. */
  readonly turnRewards?: readonly TurnReward[];
  /** Why, in words; shown to who debugs, and not kept. */
  readonly reason?: string;
}

/** What a judge gets beside the episode. */
export interface JudgeContext {
  /** Aborts when the episode's answer is wanted no more. */
  readonly signal: AbortSignal;
}

/**
 * Scores one episode. A rule is a pure function: the same episode gives the same word; a plain number is a value alone.
 * @throws {JudgeError} when it cannot, and whatever else went wrong: an infrastructure failure, never a zero.
 */
export type Judge = (
  episode: JudgedEpisode,
  context: JudgeContext,
) => number | Judgement | Promise<number | Judgement>;
