/**
 * Attention for training: rows that hold several samples as a packed prefix tree.
 *
 * The tokens of a row are in depth-first order, so token j and all tokens below it in the tree form a contiguous range that
 * starts at j; `visibleEnd[j]` is its end. Token i sees token j if j <= i < visibleEnd[j]: its ancestors and itself.
 *
 * Rows are split into pieces: the tokens of a piece attend to their own piece and the pieces before it. With P pieces, the
 * share (P - 1) / 2P of all pairs of tokens is therefore never computed; in these pairs the query precedes the key.
 *
 * In eight bits a last bit that differs puts a number on the other side of a rounding, and some layers later all of them differ. So there
 * the sums have the bits of slot-attention.ts, whatever else is in the row: over the values of the tokens before a query in the order of
 * the row, which is that of their positions, and then its own. Tokens that it does not see add exactly 0. onnxruntime sums a product
 * of 16 columns in this order over {@link ORDERED_ROW} tokens, and one of 64 or 128 columns, as in slots, over 256 or 128 positions. Of more
 * it adds up partial sums, whose limits are not at the same positions.
 */
import {
  Add,
  And,
  Cast,
  Concat,
  type Dim,
  Div,
  Equal,
  type Graph,
  Less,
  LessOrEqual,
  MatMul,
  Mul,
  multiplyDims,
  RangeAlong,
  ReduceSum,
  Reshape,
  SplitLike,
  StraightThrough,
  sizesAlong,
  type Tensor,
  Transpose,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Attend } from "../transformer.ts";
import {
  exponentials,
  fromGroups,
  groupedAttention,
  groupedScores,
  MASKED_SCORE,
  onesAlong,
  orderedSums,
  toHeadMajor,
} from "./attention.ts";

/** Tokens of a row up to which eight bits train with the bits of generation, for contexts as long as a product of a slot sums. */
export const ORDERED_ROW = 1_024;
const ORDERED_COLUMNS = 16;

/** The queries of a piece and what they see. Letters: R query heads of a group, Q = R * tokens of the piece, S tokens up to its end. */
interface Piece {
  /** [B, 1, Q, S] */
  readonly bias: Tensor;
  /** [1, 1, Q, S] whether a query and what it sees are the same token. */
  readonly isOwn: Tensor;
  /** [S, 2] */
  readonly ones: Tensor;
}

/**
 * Makes the attention of a packed batch.
 *
 * @param visibleEnds one tensor for each piece, in order: whole numbers [B, tokens of the piece], in 1..T. A padding token j
 *   has j + 1, so that only the token itself sees it. No piece is empty.
 * @param isOrdered whether the sums are those of slot-attention.ts in eight bits. @default false
 */
export function packedAttend(
  graph: Graph,
  spec: ModelSpec,
  visibleEnds: readonly Tensor[],
  isOrdered = false,
): Attend {
  const repeats = spec.numHeads / spec.numKeyValueHeads;
  const ends_BT = Concat(visibleEnds, 1);
  const at_1T = Unsqueeze(Cast(RangeAlong(ends_BT, 1), ends_BT.dtype), [0]);
  const sizes = visibleEnds.length === 1 ? undefined : sizesAlong(visibleEnds, 1);
  const inPieces = (x: Tensor) => (sizes === undefined ? [x] : SplitLike(x, visibleEnds, 1, sizes));
  /** Everything up to and including a piece. */
  const upTo = (pieces: readonly Tensor[], piece: number) => Concat(pieces.slice(0, piece + 1), 1);

  const places = inPieces(at_1T);
  const pieces = places.map((place, piece): Piece => {
    const readers_1RT = Concat(new Array<Tensor>(repeats).fill(Unsqueeze(place, [1])), 1);
    const reader_1Q1 = Unsqueeze(Reshape(readers_1RT, [1, multiplyDims(repeats, place.shape[1]!)]), [2]);
    const seen_11S = Unsqueeze(upTo(places, piece), [1]);
    const end_B1S = Unsqueeze(upTo(visibleEnds, piece), [1]);
    const isVisible_BQS = And(Less(reader_1Q1, end_B1S), LessOrEqual(seen_11S, reader_1Q1));
    const bias_BQS = Where(isVisible_BQS, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));
    return {
      bias: Unsqueeze(bias_BQS, [1]),
      isOwn: Unsqueeze(Equal(reader_1Q1, seen_11S), [1]),
      ones: onesAlong(upTo(places, piece), 1),
    };
  });

  return function attendPacked(_layer, q, k, v) {
    const [queries, keys, values] = [q, k, v].map(inPieces);
    const mixed = pieces.map((piece, at) => {
      const [keysUpTo, valuesUpTo] = [keys!, values!].map((parts) => toHeadMajor(upTo(parts, at)));
      const exact = groupedAttention(queries![at]!, keysUpTo!, valuesUpTo!, piece.bias);
      if (!isOrdered) return exact;
      return StraightThrough(
        orderedAttention(queries![at]!, keysUpTo!, valuesUpTo!, toHeadMajor(values![at]!), piece),
        exact,
      );
    });
    return Concat(mixed, 1);
  };
}

/**
 * {@link groupedAttention} with the sums of generation.
 *
 * @param q [B, T, H, D]; keys and values are [B, G, S, D], the queries' own values [B, G, T, D].
 */
function orderedAttention(
  q: Tensor,
  keys: Tensor,
  values: Tensor,
  own: Tensor,
  { bias, isOwn, ones }: Piece,
): Tensor {
  const [rows, tokens, numHeads] = q.shape as [Dim, Dim, number];
  const groups = Number(keys.shape[1]);
  const e = exponentials(groupedScores(q, keys, bias));
  const earlier = Where(isOwn, 0, e);
  const toOwn = ReduceSum(Where(isOwn, e, 0), { axes: [3] });
  const byHead = (x: Tensor) => Reshape(x, [rows, groups, numHeads / groups, tokens, x.shape[3]!]);
  const sums = Add(byHead(orderedProduct(earlier, values)), Mul(byHead(toOwn), Unsqueeze(own, [2])));
  return fromGroups(Div(sums, byHead(Add(orderedSums(earlier, ones), toOwn))), q);
}

/** [B, G, Q, S] x [B, G, S, D] -> [B, G, Q, D], each sum in the order of S. */
function orderedProduct(left: Tensor, right: Tensor): Tensor {
  const [rows, groups, seen, width] = right.shape as [Dim, Dim, Dim, number];
  if (width % ORDERED_COLUMNS !== 0) return MatMul(left, right);
  const parts = Reshape(right, [rows, groups, seen, width / ORDERED_COLUMNS, ORDERED_COLUMNS]);
  const product = MatMul(Unsqueeze(left, [2]), Transpose(parts, [0, 1, 3, 2, 4]));
  return Reshape(Transpose(product, [0, 1, 3, 2, 4]), [rows, groups, left.shape[2]!, width]);
}
