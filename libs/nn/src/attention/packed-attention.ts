/**
 * Attention for training: rows that hold several samples as a packed prefix tree.
 *
 * The tokens of a row are in depth-first order, so token j and all tokens below it in the tree form a contiguous range that
 * starts at j; `visibleEnd[j]` is its end. Token i sees token j if j <= i < visibleEnd[j]: its ancestors and itself.
 *
 * Rows are split into pieces: the tokens of a piece attend to their own piece and the pieces before it. With P pieces, the
 * share (P - 1) / 2P of all pairs of tokens is therefore never computed; in these pairs the query precedes the key.
 */
import {
  And,
  Cast,
  Concat,
  type Graph,
  Less,
  LessOrEqual,
  multiplyDims,
  RangeAlong,
  Reshape,
  SplitLike,
  sizesAlong,
  type Tensor,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Attend } from "../transformer.ts";
import { groupedAttention, MASKED_SCORE, toHeadMajor } from "./attention.ts";

/**
 * Makes the attention of a packed batch.
 *
 * @param visibleEnds one tensor for each piece, in order: whole numbers [B, tokens of the piece], in 1..T. A padding token j
 *   has j + 1, so that only the token itself sees it. No piece is empty.
 */
export function packedAttend(graph: Graph, spec: ModelSpec, visibleEnds: readonly Tensor[]): Attend {
  const repeats = spec.numHeads / spec.numKeyValueHeads;
  const ends_BT = Concat(visibleEnds, 1);
  const at_1T = Unsqueeze(Cast(RangeAlong(ends_BT, 1), ends_BT.dtype), [0]);
  const sizes = visibleEnds.length === 1 ? undefined : sizesAlong(visibleEnds, 1);
  const inPieces = (x: Tensor) => (sizes === undefined ? [x] : SplitLike(x, visibleEnds, 1, sizes));
  /** Everything up to and including a piece. */
  const upTo = (pieces: readonly Tensor[], piece: number) => Concat(pieces.slice(0, piece + 1), 1);

  const places = inPieces(at_1T);
  const biases = places.map((place, piece) => {
    // Letters: R query heads of a group, Q = R * tokens of the piece, S tokens up to the end of the piece.
    const readers_1RT = Concat(new Array<Tensor>(repeats).fill(Unsqueeze(place, [1])), 1);
    const reader_1Q1 = Unsqueeze(Reshape(readers_1RT, [1, multiplyDims(repeats, place.shape[1]!)]), [2]);
    const seen_11S = Unsqueeze(upTo(places, piece), [1]);
    const end_B1S = Unsqueeze(upTo(visibleEnds, piece), [1]);
    const isVisible_BQS = And(Less(reader_1Q1, end_B1S), LessOrEqual(seen_11S, reader_1Q1));
    const bias_BQS = Where(isVisible_BQS, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));
    return Unsqueeze(bias_BQS, [1]);
  });

  return function attendPacked(_layer, q, k, v) {
    const [queries, keys, values] = [q, k, v].map(inPieces);
    const mixed = biases.map((bias, piece) =>
      groupedAttention(
        queries![piece]!,
        toHeadMajor(upTo(keys!, piece)),
        toHeadMajor(upTo(values!, piece)),
        bias,
      ),
    );
    return Concat(mixed, 1);
  };
}
