/**
 * Attention for generation with small models: the context of each sequence is copied into one tensor.
 *
 * Letters as in decode-graph.ts, and P pool pages of A = PAGE_ROWS rows. The rows of a context are in the order of their
 * positions, earlier rows from the pools and new rows from this run, so that one product computes all scores and one product
 * sums the values:
 *
 *   D1: the sum over values runs over positions 0, 1, 2, ... of the sequence, no matter how many of them are new. If it were
 *       split into [earlier | new], it would depend on the place of the split, and a recomputed context would give other
 *       bits.
 *   D2: masked positions have probability exactly 0 and finite values, so the padding of L adds nothing. L is padded to
 *       multiples of {@link CONTEXT_BUCKET}, so that a position is always in the same lane of a vector kernel.
 *   D3: products with pool rows have at least two rows of queries, because onnxruntime's kernel for one row sums in
 *       another order. See {@link minQueries}.
 *
 * Inputs, int32 but for the pools:
 *
 *   keys.0, values.0, ...                 pool of each layer [G, P, A*D], float32; page 0 is zero
 *   contextPages [S, L/A]                 pool page of each A positions; 0 if there is none yet. The rows of new positions
 *                                         are replaced; the rows after them are masked and must be finite
 *   queryPositions [S, Q]                 position of each query
 */
import {
  Add,
  Cast,
  type Dim,
  type EightBitType,
  ExpandLike,
  FusedMatMul,
  Gather,
  type Graph,
  LessOrEqual,
  MatMul,
  Mul,
  multiplyDims,
  RangeAlong,
  Reshape,
  ScatterElements,
  Softmax,
  type Tensor,
  Transpose,
  Unsqueeze,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import { RowRounding } from "../quantization/row-rounding.ts";
import type { Attend } from "../transformer.ts";
import { biasOf } from "./attention.ts";
import { contextInputs, type Queries } from "./cached-attention.ts";
import { attendedRows, attendRounded, roundQueries, summedRounding } from "./eight-bit-attention.ts";

/** Number of consecutive positions whose rows are adjacent in a pool. Gathering row by row takes three times as long. */
export const PAGE_ROWS = 16;
/** Contexts are padded to multiples of this: four vectors of sixteen floats, the widest step of the softmax kernels. */
export const CONTEXT_BUCKET = 4 * PAGE_ROWS;

/** Minimum number of queries per sequence; a run with fewer is padded (D3). */
export function minQueries(spec: ModelSpec): number {
  return spec.numHeads > spec.numKeyValueHeads ? 1 : 2;
}

/** @param eightBits the type of queries and values, if attention is in eight bits (eight-bit-attention.ts); pools are float32 all the same. */
export function pooledAttend(
  graph: Graph,
  spec: ModelSpec,
  queriesOf: Queries,
  eightBits?: EightBitType,
): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const queries: Dim = multiplyDims(repeats, "queries");
  const contextPages = graph.input("contextPages", "int32", ["sequences", "pages"]);
  const context = multiplyDims(PAGE_ROWS, "pages");
  const queryPositions = graph.input("queryPositions", "int32", ["sequences", "queries"]);

  const page_P1 = Unsqueeze(Mul(RangeAlong(contextPages, 1), PAGE_ROWS), [1]);
  const rowsOfPage = graph.constant(
    "int64",
    Array.from({ length: PAGE_ROWS }, (_, row) => row),
  );
  const position_L = Cast(Reshape(Add(page_P1, rowsOfPage), [context]), "int32");
  const perHead_SQR = Add(
    Unsqueeze(queryPositions, [2]),
    graph.constant("int32", new Array(repeats).fill(0)),
  );
  const perHead_SQ = Reshape(perHead_SQR, ["sequences", queries]);
  const isSeen_SQL = LessOrEqual(position_L, Unsqueeze(perHead_SQ, [2]));
  const bias_SQL = biasOf(isSeen_SQL);
  const places_1SQ1 = Unsqueeze(queryPositions, [0, 3]);

  /** The context [G, S, L, D]: earlier rows from the pool, and new rows at their positions (D1). */
  const bringTogether = (name: string, fresh: Tensor): Tensor => {
    const pool = graph.input(name, "float32", [groups, "poolPages", PAGE_ROWS * headDim]);
    const earlier = Reshape(Gather(pool, contextPages, 1), [groups, "sequences", context, headDim]);
    const fresh_GSQD = Transpose(queriesOf.split(fresh, [groups]), [2, 0, 1, 3]);
    return ScatterElements(earlier, ExpandLike(places_1SQ1, fresh_GSQD), fresh_GSQD, 2);
  };

  const rounding_SQ1 = eightBits && summedRounding(Unsqueeze(perHead_SQ, [2]));
  const rows = new RowRounding(graph);
  const attendTo = (q: Tensor, keys: Tensor, values: Tensor): Tensor => {
    if (eightBits !== undefined && rounding_SQ1 !== undefined) {
      const [k, v] = [rows.round(keys, eightBits), rows.round(values, eightBits)];
      return attendRounded(roundQueries(rows, q), attendedRows(k, v), bias_SQL, rounding_SQ1);
    }
    const scores = FusedMatMul(q, keys, { transB: true, alpha: 1 / Math.sqrt(headDim) });
    return MatMul(Softmax(Add(scores, bias_SQL)), values);
  };

  return function attendPooled(layer, q, k, v) {
    const names = contextInputs(layer);
    const keys_GSLD = bringTogether(names.keys, k);
    const values_GSLD = bringTogether(names.values, v);
    const q_SQGRD = queriesOf.split(q, [groups, repeats]);
    const q_GSQD = Reshape(Transpose(q_SQGRD, [2, 0, 1, 3, 4]), [groups, "sequences", queries, headDim]);
    const mixed_GSQD = attendTo(q_GSQD, keys_GSLD, values_GSLD);
    const mixed_GSQRD = Reshape(mixed_GSQD, [groups, "sequences", "queries", repeats, headDim]);
    const mixed_SQGRD = Transpose(mixed_GSQRD, [1, 2, 0, 3, 4]);
    return queriesOf.join(mixed_SQGRD);
  };
}
