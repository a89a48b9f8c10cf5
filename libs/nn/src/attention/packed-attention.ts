/**
 * Attention for training: rows that hold several samples as a packed prefix tree.
 *
 * The tokens of a row are in depth-first order, so token j and all tokens below it in the tree form a contiguous range that
 * starts at j; `visibleEnd[j]` is its end. Token i sees token j if j <= i < visibleEnd[j]: its ancestors and itself.
 *
 * Rows are split into pieces: the tokens of a piece attend to their own piece and the pieces before it. With P pieces, the
 * share (P - 1) / 2P of all pairs of tokens is therefore never computed; in these pairs the query precedes the key.
 *
 * In eight bits its sums have no order (eight-bit-attention.ts), so that it has the bits of generation.
 */
import {
  And,
  Cast,
  Concat,
  type Dim,
  type EightBitType,
  type Graph,
  Less,
  LessOrEqual,
  multiplyDims,
  RangeAlong,
  Reshape,
  SplitLike,
  StraightThrough,
  sizesAlong,
  type Tensor,
  Unsqueeze,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import { type RoundedRows, RowRounding } from "../quantization/row-rounding.ts";
import type { Attend } from "../transformer.ts";
import { biasOf, groupedAttention, toHeadMajor } from "./attention.ts";
import { eightBitAttention, summedRounding } from "./eight-bit-attention.ts";

/** The queries of a piece and what they see. Letters: R query heads of a group, Q = R * tokens of the piece, S tokens up to its end. */
interface Piece {
  /** [B, 1, Q, S] */
  readonly bias: Tensor;
  /** [B, 1, Q, 1] `summedRounding`, in eight bits. */
  readonly rounding: Tensor | undefined;
}

/** What attention in eight bits needs. */
export interface EightBitRows {
  readonly type: EightBitType;
  /** [B, T] positions of the tokens, whole numbers. */
  readonly positions: Tensor;
}

/**
 * Makes the attention of a packed batch.
 *
 * @param visibleEnds one tensor for each piece, in order: whole numbers [B, tokens of the piece], in 1..T. A padding token j
 *   has j + 1, so that only the token itself sees it. No piece is empty.
 * @param eightBits computes it in eight bits, with the gradients of float32 (straight-through). @default in float32
 */
export function packedAttend(
  graph: Graph,
  spec: ModelSpec,
  visibleEnds: readonly Tensor[],
  eightBits?: EightBitRows,
): Attend {
  const repeats = spec.numHeads / spec.numKeyValueHeads;
  const ends_BT = Concat(visibleEnds, 1);
  const at_1T = Unsqueeze(Cast(RangeAlong(ends_BT, 1), ends_BT.dtype), [0]);
  const sizes = visibleEnds.length === 1 ? undefined : sizesAlong(visibleEnds, 1);
  const inPieces = (x: Tensor) => (sizes === undefined ? [x] : SplitLike(x, visibleEnds, 1, sizes));
  /** Everything up to and including a piece. */
  const upTo = (pieces: readonly Tensor[], piece: number) => Concat(pieces.slice(0, piece + 1), 1);

  const places = inPieces(at_1T);
  /** [B, tokens] -> [B, Q, 1], the same for each of the R heads */
  const perQuery = (x: Tensor) => {
    const [rows, tokens] = x.shape as [Dim, Dim];
    const heads = Concat(new Array<Tensor>(repeats).fill(Unsqueeze(x, [1])), 1);
    return Unsqueeze(Reshape(heads, [rows, multiplyDims(repeats, tokens)]), [2]);
  };
  const positions = eightBits && inPieces(eightBits.positions);
  const rows = new RowRounding(graph);

  const pieces = places.map((place, piece): Piece => {
    const reader_1Q1 = perQuery(place);
    const seen_11S = Unsqueeze(upTo(places, piece), [1]);
    const end_B1S = Unsqueeze(upTo(visibleEnds, piece), [1]);
    const isVisible_BQS = And(Less(reader_1Q1, end_B1S), LessOrEqual(seen_11S, reader_1Q1));
    const bias_BQS = biasOf(isVisible_BQS);
    return {
      bias: Unsqueeze(bias_BQS, [1]),
      rounding: positions && Unsqueeze(summedRounding(perQuery(positions[piece]!)), [1]),
    };
  });

  const headsUpTo = (parts: readonly Tensor[], piece: number) => toHeadMajor(upTo(parts, piece));
  /** The rows of x [B, T, G, D], rounded once for all pieces that see them: those of each piece. */
  const roundedPieces = (x: Tensor, { type }: EightBitRows) => {
    const { values, scales } = rows.round(x, type);
    const [valueParts, scaleParts] = [inPieces(values), inPieces(scales)];
    return (piece: number): RoundedRows => ({
      values: headsUpTo(valueParts, piece),
      scales: headsUpTo(scaleParts, piece),
    });
  };

  return function attendPacked(_layer, q, k, v) {
    const [queries, keys, values] = [q, k, v].map(inPieces);
    const rounded = eightBits && [roundedPieces(k, eightBits), roundedPieces(v, eightBits)];
    const mixed = pieces.map(({ bias, rounding }, at) => {
      const usual = groupedAttention(queries![at]!, headsUpTo(keys!, at), headsUpTo(values!, at), bias);
      if (rounded === undefined || rounding === undefined) return usual;
      const [keysUpTo, valuesUpTo] = rounded.map((partsUpTo) => partsUpTo(at));
      return StraightThrough(
        eightBitAttention(rows, queries![at]!, keysUpTo!, valuesUpTo!, bias, rounding),
        usual,
      );
    });
    return Concat(mixed, 1);
  };
}
