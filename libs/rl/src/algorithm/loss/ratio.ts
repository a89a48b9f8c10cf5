/**
 * The choice of the ratio in losses that have one of token and turn.
 *
 *   token    r_t = pi(token) / behaviour(token)
 *   segment  r_t = e^(mean of log pi - log behaviour over the segment), the same for all of its tokens
 *
 * A segment is an unbroken run of trained tokens in a sample: what the model wrote in one turn (ROLL's `ratio_type`).
 */

import { z } from "zod";
import type { GroupInput } from "./token-numbers.ts";

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

/** Whether PPO's clip holds a gradient back. It binds only on the side to which the advantage pushes. */
export function isPpoClipped(
  ratio: number,
  advantage: number,
  { clipLow, clipHigh }: { readonly clipLow: number; readonly clipHigh: number },
): boolean {
  return advantage > 0 ? ratio > 1 + clipHigh : advantage < 0 && ratio < 1 - clipLow;
}
