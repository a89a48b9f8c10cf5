/**
 * The decoder for generation: attention over keys and values of earlier runs, which the caller keeps in pools.
 *
 * Letters: N new tokens, S sequences, Q queries per sequence (the most new tokens of one, padded), L context positions
 * per sequence (padded), W wanted logits, P pool pages of A = PAGE_ROWS rows, C hidden size, H query heads,
 * G key/value heads, R = H / G, D head size, V vocabulary.
 *
 * Everything but attention runs on the N new tokens, without padding. For attention the context of each sequence is
 * brought together in its order, earlier rows from the pools and new ones from this run, so that one product gives
 * its scores and one sums its values:
 *
 *   D1: the sum over values runs over positions 0, 1, 2, ... of the sequence, however many of them are new. Split into
 *       [earlier | new] it would depend on where the split lies, and a recomputed context would give other bits.
 *   D2: masked positions have probability exactly 0 and finite values, so padding L adds nothing; L is padded to
 *       multiples of {@link CONTEXT_BUCKET}, so that a position always meets the same lane of a vector kernel.
 *   D3: products with pool rows have two rows of queries or more: onnxruntime's kernel for one row sums in
 *       another order. See {@link minQueries}.
 *   D4: only the K/V rows of the new tokens are outputs: outputs are copied, inputs are not.
 */
import {
  Add,
  Cast,
  Concat,
  type Dim,
  ExpandLike,
  FusedMatMul,
  Gather,
  Graph,
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
  Where,
} from "@hone/tensor";
import { MASKED_SCORE } from "./attention.ts";
import type { ModelSpec } from "./model-spec.ts";
import { type Attend, buildHead, buildTransformer, weightInitializers } from "./transformer.ts";

/** Consecutive positions of a sequence whose rows lie together in a pool; gathering row by row takes three times as long. */
export const PAGE_ROWS = 16;
/** Contexts are padded to multiples of this: four vectors of sixteen floats, the widest step of the softmax kernels. */
export const CONTEXT_BUCKET = 4 * PAGE_ROWS;

/** Fewest queries per sequence that a run is padded to (D3). */
export function minQueries(spec: ModelSpec): number {
  return spec.numHeads > spec.numKeyValueHeads ? 1 : 2;
}

/** Names of the pools of a layer: inputs [G, P, A*D], float32. Page 0 is zero. */
export function poolInputs(layer: number): { readonly keys: string; readonly values: string } {
  return { keys: `keys.${layer}`, values: `values.${layer}` };
}

/**
 * Builds the graph. Inputs beside the pools, int32 but where stated:
 *
 *   tokenIds [1, N], positionIds [1, N]   the new tokens
 *   contextPages [S, L/A]                 pool page of each A positions; 0 where there is none yet. What it holds for
 *                                         new positions is replaced, behind them it is masked and must be finite
 *   queryTokens [S, Q]                    new token of each query; padding repeats the sequence's last one
 *   queryPositions [S, Q]                 its position
 *   tokenQueries [1, N]                   query s * Q + q of each new token
 *   wantedTokens [1, W]                   new tokens whose logits are wanted
 *
 * Outputs: logits [1, W, V]; newKeyValues [1, N, 2*layers*G*D], keys of layer 0, 1, ..., then values.
 */
export function buildDecodeGraph(spec: ModelSpec): Graph {
  const graph = new Graph("decode");
  const weights = weightInitializers(graph, spec);
  const tokenIds = graph.input("tokenIds", "int32", [1, "tokens"]);
  const positionIds = graph.input("positionIds", "int32", [1, "tokens"]);
  const wantedTokens = graph.input("wantedTokens", "int32", ["wanted"]);
  const cache = pooledAttend(graph, spec);
  const hidden = buildTransformer(graph, spec, { tokenIds, positionIds, weights, attend: cache.attend });
  graph.output("logits", buildHead(spec, Gather(hidden, wantedTokens, 1), weights));
  graph.output("newKeyValues", Concat([...cache.newKeys, ...cache.newValues], 2));
  return graph;
}

interface PooledAttention {
  readonly attend: Attend;
  /** [1, N, G*D] of each layer, filled as layers are built. */
  readonly newKeys: Tensor[];
  readonly newValues: Tensor[];
}

function pooledAttend(graph: Graph, spec: ModelSpec): PooledAttention {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const queries: Dim = multiplyDims(repeats, "queries");
  const contextPages = graph.input("contextPages", "int32", ["sequences", "pages"]);
  const context = multiplyDims(PAGE_ROWS, "pages");
  const queryTokens = graph.input("queryTokens", "int32", ["sequences", "queries"]);
  const queryPositions = graph.input("queryPositions", "int32", ["sequences", "queries"]);
  const tokenQueries = graph.input("tokenQueries", "int32", [1, "tokens"]);

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
  const bias_SQL = Where(isSeen_SQL, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));
  const places_1SQ1 = Unsqueeze(queryPositions, [0, 3]);

  const perQuery = (x_1NC: Tensor, heads: readonly number[]): Tensor => {
    const x_SQC = Gather(Reshape(x_1NC, ["tokens", heads.reduce((a, b) => a * b, headDim)]), queryTokens);
    return Reshape(x_SQC, ["sequences", "queries", ...heads, headDim]);
  };
  /** Earlier rows from the pool, new ones in their places: [G, S, L, D]. D1 */
  const bringTogether = (name: string, fresh: Tensor): Tensor => {
    const pool = graph.input(name, "float32", [groups, "poolPages", PAGE_ROWS * headDim]);
    const earlier = Reshape(Gather(pool, contextPages, 1), [groups, "sequences", context, headDim]);
    const fresh_GSQD = Transpose(perQuery(fresh, [groups]), [2, 0, 1, 3]);
    return ScatterElements(earlier, ExpandLike(places_1SQ1, fresh_GSQD), fresh_GSQD, 2);
  };

  const newKeys: Tensor[] = [];
  const newValues: Tensor[] = [];
  const attend: Attend = function attendPooled(layer, q, k, v) {
    newKeys.push(Reshape(k, [1, "tokens", groups * headDim]));
    newValues.push(Reshape(v, [1, "tokens", groups * headDim]));
    const names = poolInputs(layer);
    const keys_GSLD = bringTogether(names.keys, k);
    const values_GSLD = bringTogether(names.values, v);
    const q_SQGRD = perQuery(q, [groups, repeats]);
    const q_GSQD = Reshape(Transpose(q_SQGRD, [2, 0, 1, 3, 4]), [groups, "sequences", queries, headDim]);
    const scores_GSQL = FusedMatMul(q_GSQD, keys_GSLD, { transB: true, alpha: 1 / Math.sqrt(headDim) });
    const mixed_GSQD = MatMul(Softmax(Add(scores_GSQL, bias_SQL)), values_GSLD);
    const mixed_GSQRD = Reshape(mixed_GSQD, [groups, "sequences", "queries", repeats, headDim]);
    const mixed_SQGRD = Transpose(mixed_GSQRD, [1, 2, 0, 3, 4]);
    const rows = multiplyDims("sequences", "queries");
    return Gather(Reshape(mixed_SQGRD, [rows, numHeads * headDim]), tokenQueries);
  };
  return { attend, newKeys, newValues };
}
