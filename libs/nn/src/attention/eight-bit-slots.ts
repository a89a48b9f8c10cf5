/**
 * Attention for generation with large models in eight bits: earlier keys and values lie in slots, as whole numbers (eight-bit-attention.ts).
 *
 * Letters as in slot-attention.ts and shared-prefix.ts. As sums have no order, a context is read in three parts, where they are: the rows
 * that it has in common with other sequences, those of its own in a slot, and the new rows of the run. A run that has no rows of the first kind
 * leaves that part out, and one that has none of the second both. Where only some sequences have rows in a part, those of the others are
 * masked. Keys are in blocks of columns (slot-rows.ts), B of W positions, of which slots have KEY_BLOCK.
 *
 * In the last layer, only the result of each sequence's last token is needed, so each sequence has one query there.
 *
 * Inputs:
 *
 *   contextKeys.0, ...        [S, G, B, D, W] of the type of whole numbers; rows after a context must be finite, as all masked ones
 *   contextValues.0, ...      [S, G, B*W, D] of the same type
 *   contextKeyScales.0, ...   [S, G, B, 1, W] float32
 *   contextValueScales.0, ... [S, G, 1, B*W] float32
 *   contextRows [S]           the rows of each context in its slot, int32
 *   contextEnds [S]           the position of each sequence's first new token, int32
 */
import {
  Add,
  Cast,
  Concat,
  type Dim,
  type EightBitType,
  Gather,
  type Graph,
  Greater,
  If,
  Less,
  LessOrEqual,
  Mul,
  multiplyDims,
  RangeAlong,
  ReduceMax,
  Reshape,
  SplitLike,
  Sub,
  sizesAlong,
  type Tensor,
  Transpose,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import { type RoundedRows, RowRounding } from "../quantization/row-rounding.ts";
import type { Attend } from "../transformer.ts";
import { MASKED_SCORE } from "./attention.ts";
import type { Queries } from "./cached-attention.ts";
import {
  type AttendedRows,
  attendRounded,
  eightBitShares,
  keyProducts,
  mixedValues,
  roundQueries,
  summedRounding,
  valueSums,
} from "./eight-bit-attention.ts";
import { type SharedQueries, sharedPrefixes } from "./shared-prefix.ts";
import type { SlotTokens } from "./slot-attention.ts";
import { type SlotRowName, slotTensor } from "./slot-rows.ts";

/** The tokens that attend, one or more of each sequence, with what they share in all layers. */
interface Readers {
  /** Number of queries of a sequence, and of rows in its products. */
  readonly queries: Dim;
  readonly rows: Dim;
  /** By the first part that is read; of all parts from this one on, `bias` of a row of scores [S, 1, rows, ...]. */
  readonly biases: readonly Tensor[];
  /** By part, a tensor whose fourth axis has its size; and the sizes as `biases`. */
  readonly likes: readonly Tensor[];
  readonly sizes: readonly Tensor[];
  /** [S, 1, rows, 1] `summedRounding` */
  readonly rounding: Tensor;
  readonly shared: SharedQueries;
  /** The same for both digits of each query. */
  readonly sharedDigits: SharedQueries;
}

/** A part of the contexts: L rows of each sequence. */
interface Part {
  /** `keyProducts` of queries: [S, G, R, D] -> [S, G, R, L] */
  products(queries: Tensor): Tensor;
  /** [S, G, 1, L] */
  valueScales(): Tensor;
  /** `valueSums` of digits: [S, G, 2*R, L] -> [S, G, 2*R, D] */
  sums(digits: Tensor): Tensor;
}

/** Outputs the new rows of each layer, too: [N, G*D] or [N, G] each. */
export function eightBitSlotAttend(
  graph: Graph,
  spec: ModelSpec,
  queriesOf: Queries,
  { positionIds, lastTokens }: SlotTokens,
  type: EightBitType,
): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const contextRows = graph.input("contextRows", "int32", ["sequences"]);
  const contextEnds = graph.input("contextEnds", "int32", ["sequences"]);
  const prefixes = sharedPrefixes(graph, spec);
  const position_N = Reshape(positionIds, ["tokens"]);
  const rounding = new RowRounding(graph);
  const hasAny = (rows_S: Tensor) => Greater(ReduceMax(rows_S, { keepDims: false }), 0);
  const [hasShared, hasOwn] = [hasAny(prefixes.rows), hasAny(contextRows)];
  const isSharing_S111 = Reshape(Greater(prefixes.rows, 0), ["sequences", 1, 1, 1]);

  /** Slots of a layer; keys are in blocks [..., B, D, W], and their scales [..., B, 1, W]. @param count of slots */
  function storedRows(kind: "context" | "shared", count: string, layer: number): AttendedRows {
    const [blocks, width] = [`${kind}Blocks`, `${kind}Width`];
    const length = multiplyDims(blocks, width);
    const input = (name: SlotRowName, shape: readonly Dim[]) =>
      graph.input(slotTensor(kind, name, layer), name.endsWith("Scales") ? "float32" : type, [
        count,
        groups,
        ...shape,
      ]);
    return {
      keys: input("Keys", [blocks, headDim, width]),
      keyScales: input("KeyScales", [blocks, 1, width]),
      values: input("Values", [length, headDim]),
      valueScales: input("ValueScales", [1, length]),
    };
  }

  /** The new rows [1, N, G, D] of each sequence, which are outputs as well; padding repeats the last one. */
  function freshRows(layer: number, keys: RoundedRows, values: RoundedRows): AttendedRows {
    const fresh = (name: SlotRowName, rows: Tensor, order: number[]) => {
      const row = Reshape(rows, ["tokens", multiplyDims(groups, rows.shape.at(-1)!)]);
      graph.output(slotTensor("new", name, layer), row);
      const rows_SQGD = Reshape(Gather(row, queriesOf.tokens), [
        "sequences",
        "queries",
        groups,
        rows.shape.at(-1)!,
      ]);
      return Transpose(rows_SQGD, order);
    };
    return {
      keys: fresh("Keys", keys.values, [0, 2, 3, 1]),
      keyScales: fresh("KeyScales", keys.scales, [0, 2, 3, 1]),
      values: fresh("Values", values.values, [0, 2, 1, 3]),
      valueScales: fresh("ValueScales", values.scales, [0, 2, 3, 1]),
    };
  }

  /** @param positions of the queries [S, queries] @param parts in their order: shared, own, new */
  function readersOf(positions: Tensor, queries: Dim, parts: readonly AttendedRows[]): Readers {
    const rows = multiplyDims(queries, repeats);
    const perHead = Add(Unsqueeze(positions, [2]), graph.constant("int32", new Array(repeats).fill(0)));
    const position_S1R1 = Reshape(perHead, ["sequences", 1, rows, 1]);
    const perSequence = (x_S: Tensor) => Reshape(x_S, ["sequences", 1, 1, 1]);
    const inAll = (x_S: Tensor) => Add(perSequence(x_S), Sub(position_S1R1, position_S1R1));
    const places = parts.map(({ valueScales }) => Cast(RangeAlong(valueScales, 3), "int32"));
    const likes = [
      Less(places[0]!, inAll(prefixes.rows)),
      Less(places[1]!, inAll(contextRows)),
      LessOrEqual(places[2]!, Sub(position_S1R1, perSequence(contextEnds))),
    ].map((isSeen) => Where(isSeen, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE)));
    return {
      queries,
      rows,
      biases: likes.map((_, first) => Concat(likes.slice(first), 3)),
      likes,
      sizes: likes.map((_, first) => sizesAlong(likes.slice(first), 3)),
      rounding: summedRounding(position_S1R1),
      shared: prefixes.queriesOf(position_S1R1),
      sharedDigits: prefixes.queriesOf(Concat([position_S1R1, position_S1R1], 2)),
    };
  }

  /** `attendRounded` over the last parts. @param first of them */
  function attendParts(
    queries: RoundedRows,
    parts: readonly Part[],
    first: number,
    readers: Readers,
  ): Tensor {
    const read = parts.slice(first);
    const products = Concat(
      read.map((part) => part.products(queries.values)),
      3,
    );
    const valueScales = Concat(
      read.map((part) => part.valueScales()),
      3,
    );
    const scores = Add(Mul(products, queries.scales), readers.biases[first]!);
    const shares = eightBitShares(scores, valueScales, readers.rounding);
    const digits = Concat([shares.first, shares.second], 2);
    const byPart = SplitLike(digits, readers.likes.slice(first), 3, readers.sizes[first]);
    const sums = read.map((part, at) => part.sums(byPart[at]!));
    return mixedValues(
      sums.reduce((a, b) => Add(a, b)),
      shares.unit,
    );
  }

  let readers: Readers | undefined;
  return function attendSlots(layer, q, k, v) {
    const shared = storedRows("shared", "prefixes", layer);
    const own = storedRows("context", "sequences", layer);
    const fresh = freshRows(layer, rounding.round(k, type), rounding.round(v, type));
    const isLast = layer === spec.numLayers - 1;
    const lengths = [shared, own, fresh];
    if (isLast) readers = readersOf(Unsqueeze(Gather(position_N, lastTokens), [1]), 1, lengths);
    readers ??= readersOf(Gather(position_N, queriesOf.tokens), "queries", lengths);
    const known = readers;
    const { queries, rows, biases } = known;
    const sharedSums = (digits: Tensor) =>
      prefixes.each(digits, known.sharedDigits, (all) => valueSums(all, shared.values));
    const parts: Part[] = [
      {
        products: (x) => prefixes.each(x, known.shared, (all) => blockProducts(all, shared)),
        valueScales: () => prefixes.toSequences(shared.valueScales),
        sums: (digits) => Where(isSharing_S111, sharedSums(digits), 0),
      },
      partOf(own, blockProducts),
      partOf(fresh, (x, { keys, keyScales }) => keyProducts(x, keys, keyScales)),
    ];
    const q_SGQRD = isLast
      ? Reshape(q, ["sequences", groups, 1, repeats, headDim])
      : Transpose(queriesOf.split(q, [groups, repeats]), [0, 2, 1, 3, 4]);
    const rounded = roundQueries(rounding, Reshape(q_SGQRD, ["sequences", groups, rows, headDim]));
    const [mixed] = If(
      hasShared,
      () => [attendParts(rounded, parts, 0, known)],
      () =>
        If(
          hasOwn,
          () => [attendParts(rounded, parts, 1, known)],
          () => [attendRounded(rounded, fresh, biases[2]!, known.rounding)],
        ),
    );
    if (isLast) return Reshape(mixed!, [1, "sequences", numHeads * headDim]);
    const mixed_SGQRD = Reshape(mixed!, ["sequences", groups, queries, repeats, headDim]);
    return queriesOf.join(Transpose(mixed_SGQRD, [0, 2, 1, 3, 4]));
  };
}

function partOf(rows: AttendedRows, multiply: (queries: Tensor, rows: AttendedRows) => Tensor): Part {
  return {
    products: (queries) => multiply(queries, rows),
    valueScales: () => rows.valueScales,
    sums: (digits) => valueSums(digits, rows.values),
  };
}

/** `keyProducts` with keys in blocks. @param queries [S, G, R, D] @returns [S, G, R, B*W] */
function blockProducts(queries: Tensor, { keys, keyScales, valueScales }: AttendedRows): Tensor {
  const products_SGBRW = keyProducts(Unsqueeze(queries, [2]), keys, keyScales);
  const rows = Transpose(products_SGBRW, [0, 1, 3, 2, 4]);
  return Reshape(rows, [...queries.shape.slice(0, 3), valueScales.shape[3]!]);
}
