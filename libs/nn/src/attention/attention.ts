/**
 * Grouped-query attention over keys and values in head-major layout.
 *
 * Letters: B rows, T query tokens, S key/value tokens, H query heads, G key/value heads, R = H / G, D head size.
 * The R query heads of a group share their keys and values: they are viewed as R*T queries of one head, so that keys and
 * values are never repeated.
 */
import {
  Add,
  type Dim,
  FusedMatMul,
  MatMul,
  multiplyDims,
  Reshape,
  Softmax,
  type Tensor,
  Transpose,
  Where,
} from "@hone/tensor";

/** Score of a token that must not be seen. Its probability is exactly 0, and a row with only such scores stays finite. */
export const MASKED_SCORE = -1e9;

/** What is added to scores: 0 where a token is seen, else {@link MASKED_SCORE}. @param isSeen bool @returns float32, in its shape */
export function biasOf(isSeen: Tensor): Tensor {
  return Where(isSeen, 0, MASKED_SCORE);
}

/** [B, T, heads, D] -> [B, heads, T, D] */
export function toHeadMajor(x: Tensor): Tensor {
  return Transpose(x, [0, 2, 1, 3]);
}

/**
 * softmax(q k^T / sqrt(D) + bias) v.
 *
 * @param q [B, T, H, D]; keys and values are [B, G, S, D].
 * @param bias [B, 1, R*T, S]: 0 where a token may be seen, else {@link MASKED_SCORE}; the same for each of the R heads.
 * @returns [B, T, H*D]
 */
export function groupedAttention(q: Tensor, keys: Tensor, values: Tensor, bias: Tensor): Tensor {
  return fromGroups(MatMul(Softmax(groupedScores(q, keys, bias)), values), q);
}

/** q k^T / sqrt(D) + bias, as {@link groupedAttention} takes them: [B, G, R*T, S]. */
function groupedScores(q: Tensor, keys: Tensor, bias: Tensor): Tensor {
  const q_BGQD = toGroups(q, Number(keys.shape[1]));
  return Add(FusedMatMul(q_BGQD, keys, { transB: true, alpha: 1 / Math.sqrt(Number(q.shape[3])) }), bias);
}

/** Queries of the heads [B, T, H, D] as those of their groups [B, G, R*T, D]. */
export function toGroups(q: Tensor, groups: number): Tensor {
  const [rows, tokens, numHeads, headDim] = q.shape as [Dim, Dim, number, number];
  return Reshape(toHeadMajor(q), [rows, groups, multiplyDims(numHeads / groups, tokens), headDim]);
}

/** What the heads of each group mixed, [B, G, R*T, D], as [B, T, H*D]. @param q of the heads [B, T, H, D] */
export function fromGroups(mixed: Tensor, q: Tensor): Tensor {
  const [rows, tokens, numHeads, headDim] = q.shape as [Dim, Dim, number, number];
  const mixed_BTHD = toHeadMajor(Reshape(mixed, [rows, numHeads, tokens, headDim]));
  return Reshape(mixed_BTHD, [rows, tokens, numHeads * headDim]);
}
