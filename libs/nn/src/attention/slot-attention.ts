/**
 * Attention for generation with large models in float32 (in eight bits: eight-bit-slots.ts): each sequence's earlier keys and values lie in one piece, in a slot.
 *
 * Letters as in decode-graph.ts. The results have the same bits however a context was computed and whatever runs beside it:
 *
 *   E1: a query's own row is never part of a product with other rows. Its score and its value are added to those of the rows
 *       before it, so a token that decodes needs no row but those of its slot, and nothing is copied.
 *   E2: all rows before it are in one product, from position 0 on, which sums them in blocks of fixed length. A run whose
 *       tokens see each other needs the new rows there, too: it takes its contexts as `joined` slots, which are copied and completed
 *       in each layer. All tokens of a run are computed in one way; the other kind of slots then has the length 0.
 *   E3: as D2 and D3 of pooled-attention.ts: contexts are padded to multiples of `CONTEXT_BUCKET`, and products have at least two
 *       rows of queries. The heads of a group share a product; where a group has one head, a single query is computed twice.
 *
 * In the last layer, only the result of each sequence's last token is needed, so each sequence has one query there.
 *
 * Inputs:
 *
 *   contextKeys.0, contextValues.0, ...   slots of each layer [S, G, L, D], float32; the rows after a context are masked and must be finite
 *   joinedKeys.0, ...         slots with room for the new rows [S, G, J, D]
 *   joinedTokens [P]          the new tokens whose rows are added to joined slots: all or none, int32
 *   tokenSequences [N]        the slot of each new token, int32
 */
import {
  Add,
  Cast,
  Concat,
  type Dim,
  ExpandLike,
  FusedMatMul,
  Gather,
  type Graph,
  Less,
  MatMul,
  Mul,
  multiplyDims,
  RangeAlong,
  Reshape,
  ScatterND,
  Slice,
  Softmax,
  SplitLike,
  Sub,
  sizesAlong,
  type Tensor,
  Transpose,
  Unsqueeze,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Attend } from "../transformer.ts";
import { biasOf } from "./attention.ts";
import type { Queries } from "./cached-attention.ts";
import { type NewSlotRows, type SlotRowName, slotTensor } from "./slot-rows.ts";

export interface SlotTokens {
  /** [1, N] position of each new token, int32. */
  readonly positionIds: Tensor;
  /** [S] the last new token of each sequence, int32; they are the `readers` of the decoder. */
  readonly lastTokens: Tensor;
}

/** The tokens that attend, one or more of each sequence, with what they share in all layers. */
interface SlotReaders {
  /** Number of queries of a sequence, and of rows in its products. */
  readonly queries: Dim;
  readonly rows: Dim;
  readonly bias: Tensor;
  /** Sizes of the parts of a row of scores. */
  readonly sizes: Tensor;
}

/** The rows of a layer that queries read: slots in place, and joined ones [S, G, ..., D]. */
type Contexts = readonly [Tensor, Tensor];

/** @param newRows takes the new rows of each layer */
export function slotAttend(
  graph: Graph,
  spec: ModelSpec,
  queriesOf: Queries,
  { positionIds, lastTokens }: SlotTokens,
  newRows: NewSlotRows,
): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const tokenSequences = graph.input("tokenSequences", "int32", ["tokens"]);
  const joinedTokens = graph.input("joinedTokens", "int32", ["joinedTokens"]);
  const position_N = Reshape(positionIds, ["tokens"]);
  const places_PG3 = placesOf(
    Cast(Gather(tokenSequences, joinedTokens), "int64"),
    Cast(Gather(position_N, joinedTokens), "int64"),
    groups,
  );

  /** The contexts of a layer: those that are read in place, and those that new rows join (E2). */
  function contextsOf(layer: number, name: SlotRowName, fresh: Tensor): Contexts {
    const slots = (kind: "context" | "joined") =>
      graph.input(slotTensor(kind, name, layer), "float32", ["sequences", groups, kind, headDim]);
    newRows.add(name, fresh);
    const rows_NGD = Reshape(fresh, ["tokens", groups, headDim]);
    return [slots("context"), ScatterND(slots("joined"), places_PG3, Gather(rows_NGD, joinedTokens))];
  }

  /** @param positions of the queries [S, queries] */
  function readersOf(positions: Tensor, queries: Dim, perQuery: number, contexts: Contexts): SlotReaders {
    const rows = multiplyDims(queries, perQuery);
    const perHead = Add(Unsqueeze(positions, [2]), graph.constant("int32", new Array(perQuery).fill(0)));
    const position_S1R1 = Reshape(perHead, ["sequences", 1, rows, 1]);
    const biases = contexts.map((context) =>
      biasOf(Less(Cast(RangeAlong(context, 2), "int32"), position_S1R1)),
    );
    biases.push(Cast(Sub(position_S1R1, position_S1R1), "float32"));
    return { queries, rows, bias: Concat(biases, 3), sizes: sizesAlong(biases, 3) };
  }

  /** @param q [S, G, queries, heads, D] @param own keys and values of the queries' tokens [S, G, queries, 1, D] (E1) @returns as q */
  function attendTo(
    { queries, rows, bias, sizes }: SlotReaders,
    q: Tensor,
    keys: Contexts,
    values: Contexts,
    own: { readonly keys: Tensor; readonly values: Tensor },
  ): Tensor {
    const options = { transB: true, alpha: 1 / Math.sqrt(headDim) };
    const q_SGRD = Reshape(q, ["sequences", groups, rows, headDim]);
    const parts = keys.map((k) => FusedMatMul(q_SGRD, k, options));
    parts.push(Reshape(FusedMatMul(q, own.keys, options), ["sequences", groups, rows, 1]));
    const shares = SplitLike(Softmax(Add(Concat(parts, 3), bias)), parts, 3, sizes);
    const mixed = values.map((v, kind) => MatMul(shares[kind]!, v)).reduce((a, b) => Add(a, b));
    const byHead = (x: Tensor) => Reshape(x, ["sequences", groups, queries, q.shape[3]!, x.shape[3]!]);
    return Add(byHead(mixed), Mul(byHead(shares.at(-1)!), own.values));
  }

  // Two rows of queries (E3)
  const lastRepeats = Math.max(repeats, 2);
  function attendLast(q: Tensor, k: Tensor, v: Tensor, keys: Contexts, values: Contexts) {
    const once = Reshape(q, ["sequences", groups, 1, repeats, headDim]);
    const twice = repeats === lastRepeats ? once : Concat([once, once], 3);
    const ownOf = (x: Tensor) =>
      Reshape(Gather(Reshape(x, ["tokens", groups * headDim]), lastTokens), [
        "sequences",
        groups,
        1,
        1,
        headDim,
      ]);
    const last_S1 = Unsqueeze(Gather(position_N, lastTokens), [1]);
    const readers = readersOf(last_S1, 1, lastRepeats, keys);
    const mixed = attendTo(readers, twice, keys, values, { keys: ownOf(k), values: ownOf(v) });
    return Reshape(Slice(mixed, 3, 0, repeats), [1, "sequences", numHeads * headDim]);
  }

  let shared: SlotReaders | undefined;
  return function attendSlots(layer, q, k, v) {
    const keys = contextsOf(layer, "Keys", k);
    const values = contextsOf(layer, "Values", v);
    if (layer === spec.numLayers - 1) return attendLast(q, k, v, keys, values);
    shared ??= readersOf(Gather(position_N, queriesOf.tokens), "queries", repeats, keys);
    /** [1, N, heads, D] -> [S, G, Q, heads/G, D] */
    const byGroup = (x: Tensor, perGroup: number) =>
      Transpose(queriesOf.split(x, [groups, perGroup]), [0, 2, 1, 3, 4]);
    const own = { keys: byGroup(k, 1), values: byGroup(v, 1) };
    const mixed_SGQRD = attendTo(shared, byGroup(q, repeats), keys, values, own);
    return queriesOf.join(Transpose(mixed_SGQRD, [0, 2, 1, 3, 4]));
  };
}

/** The index [N, G, 3] of each row in slots, for the groups 0 to G-1. */
export function placesOf(sequence_N: Tensor, position_N: Tensor, groups: number): Tensor {
  const { graph } = sequence_N;
  const group_G = graph.constant(
    "int64",
    Array.from({ length: groups }, (_, group) => group),
  );
  const zero_N1 = Unsqueeze(Sub(sequence_N, sequence_N), [1]);
  const group_NG = Add(zero_N1, group_G);
  const each_NG1 = (value_N: Tensor) => Unsqueeze(ExpandLike(Unsqueeze(value_N, [1]), group_NG), [2]);
  return Concat([each_NG1(sequence_N), Unsqueeze(group_NG, [2]), each_NG1(position_N)], 2);
}
