/**
 * Attention for training: rows that hold several samples as a packed prefix tree.
 *
 * Tokens of a row stand in depth-first order, so the tokens below token j are a run that starts at j; `visibleEnd[j]`
 * is its end. Token i sees token j where j <= i < visibleEnd[j]: its ancestors and itself.
 */
import {
  And,
  Cast,
  type Graph,
  Less,
  LessOrEqual,
  RangeAlong,
  type Tensor,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import { groupedAttention, MASKED_SCORE, toHeadMajor } from "./attention.ts";
import type { Attend } from "./transformer.ts";

/**
 * Makes the attention of a packed batch.
 *
 * @param visibleEnd whole numbers [B, T], in 1..T; a padding token j has j + 1 and is seen by itself only.
 */
export function packedAttend(graph: Graph, visibleEnd: Tensor): Attend {
  const at = Cast(RangeAlong(visibleEnd, 1), visibleEnd.dtype);
  const reader_T1 = Unsqueeze(at, [1]);
  const seen_1T = Unsqueeze(at, [0]);
  const isBefore_TT = LessOrEqual(seen_1T, reader_T1);
  const isBelow_BTT = Less(reader_T1, Unsqueeze(visibleEnd, [1]));
  const isVisible_BTT = And(isBelow_BTT, isBefore_TT);
  const bias_BTT = Where(isVisible_BTT, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));
  const bias_B11TT = Unsqueeze(bias_BTT, [1, 2]);
  return function attendPacked(_layer, q, k, v) {
    return groupedAttention(q, toHeadMajor(k), toHeadMajor(v), bias_B11TT);
  };
}
