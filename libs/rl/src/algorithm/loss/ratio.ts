/**
 * The choice of the ratio in losses that have one of token and turn.
 *
 *   token    r_t = pi(token) / behaviour(token)
 *   segment  r_t = e^(mean of log pi - log behaviour over the segment), the same for all of its tokens
 *
 * A segment is an unbroken run of trained tokens in a sample: what the model wrote in one turn (ROLL's `ratio_type`).
 */

import { z } from "zod";
import { TokenCut } from "./token-cut.ts";
import { type GroupInput, MAX_LOG_RATIO } from "./token-numbers.ts";

export const Ratio = { token: "token", segment: "segment" } as const;
export type Ratio = (typeof Ratio)[keyof typeof Ratio];

/** The key of the run file. */
export const ratioOption = {
  /** Whether the ratio is that of each token, or one of each turn. */
  ratio: z.enum(Ratio).default(Ratio.token),
};

/** The constant that engines read; absent = the ratio of each token. */
export type RatioConstants = { readonly bySegment?: number };
export const ratioSchema = { bySegment: z.literal(1).optional() };

export function ratioConstants(ratio: Ratio): RatioConstants {
  return ratio === Ratio.segment ? { bySegment: 1 } : {};
}

export function ratioGroup({ bySegment }: RatioConstants): GroupInput | undefined {
  return bySegment === undefined ? undefined : "segment";
}

/** Where PPO's clip holds a gradient back. It binds only on the side to which the advantage pushes. */
export function ppoCut(
  ratio: number,
  advantage: number,
  { clipLow, clipHigh }: { readonly clipLow: number; readonly clipHigh: number },
): TokenCut {
  if (advantage > 0 && ratio > 1 + clipHigh) return TokenCut.clipHigh;
  if (advantage < 0 && ratio < 1 - clipLow) return TokenCut.clipLow;
  return TokenCut.none;
}

/** Whether PPO's clip holds a gradient back. */
export function isPpoClipped(...of: Parameters<typeof ppoCut>): boolean {
  return ppoCut(...of) !== TokenCut.none;
}

/** Which bound of a weight a ratio is beyond. */
export function boundCut(ratio: number, lower: number, upper: number): TokenCut {
  if (ratio > upper) return TokenCut.clipHigh;
  return ratio < lower ? TokenCut.clipLow : TokenCut.none;
}

const LARGEST = Math.exp(MAX_LOG_RATIO);

/** The ratio as losses take it, within e^-20 and e^20. */
export function boundedRatio(ratio: number): number {
  return Math.min(LARGEST, Math.max(1 / LARGEST, ratio));
}

/** The derivative of the bounded ratio with respect to its logarithm: the ratio itself, and 0 beyond the bounds. */
export function ratioSlope(ratio: number): number {
  return ratio > LARGEST || ratio < 1 / LARGEST ? 0 : ratio;
}
