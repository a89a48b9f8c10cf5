/**
 * Attention for generation with large models in eight bits: earlier keys and values lie in slots, as whole numbers (eight-bit-attention.ts).
 *
 * Letters as in slot-attention.ts and shared-prefix.ts. As sums have no order, a context is read in three parts, where they are: the rows
 * that it has in common with other sequences, those of its own in a slot, and the new rows of the run. A part that a run does not need has
 * one masked row. Keys are in blocks of columns (slot-rows.ts), B of W positions, of which slots have KEY_BLOCK.
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
  Less,
  LessOrEqual,
  Mul,
  multiplyDims,
  RangeAlong,
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
  eightBitShares,
  keyProducts,
  mixedValues,
  roundQueries,
  summedRounding,
  valueSums,
} from "./eight-bit-attention.ts";
import { type SharedQueries, sharedPrefixes } from "./shared-prefix.ts";
import type { SlotReaders, SlotTokens } from "./slot-attention.ts";
import { type SlotRowName, slotTensor } from "./slot-rows.ts";

/** Readers of the parts of contexts. */
interface Readers extends SlotReaders {
  /** `bias` of each part [S, 1, rows, ...]. */
  readonly biases: readonly Tensor[];
  /** [S, 1, rows, 1] `summedRounding` */
  readonly rounding: Tensor;
  readonly shared: SharedQueries;
  /** The same for both digits of each query. */
  readonly sharedDigits: SharedQueries;
}

/** Rows of a part that queries read; S sequences, or as many prefixes. */
interface Part {
  /** [S, G, D, L], or in blocks [S, G, B, D, W] */
  readonly keys: Tensor;
  /** [S, G, 1, L], or in blocks [S, G, B, 1, W] */
  readonly keyScales: Tensor;
  /** [S, G, L, D] */
  readonly values: Tensor;
  /** [S, G, 1, L] */
  readonly valueScales: Tensor;
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
  const perSequence = (name: string) =>
    Reshape(graph.input(name, "int32", ["sequences"]), ["sequences", 1, 1, 1]);
  const [contextRows_S111, contextEnds_S111] = [perSequence("contextRows"), perSequence("contextEnds")];
  const prefixes = sharedPrefixes(graph, spec);
  const position_N = Reshape(positionIds, ["tokens"]);
  const rounding = new RowRounding(graph);

  /** Slots of a layer. @param count of them */
  function storedPart(kind: "context" | "shared", count: string, layer: number): Part {
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
  function freshPart(layer: number, keys: RoundedRows, values: RoundedRows): Part {
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

  /** @param positions of the queries [S, queries] */
  function readersOf(positions: Tensor, queries: Dim, parts: readonly Part[]): Readers {
    const rows = multiplyDims(queries, repeats);
    const perHead = Add(Unsqueeze(positions, [2]), graph.constant("int32", new Array(repeats).fill(0)));
    const position_S1R1 = Reshape(perHead, ["sequences", 1, rows, 1]);
    const inAll = (x_S111: Tensor) => Add(x_S111, Sub(position_S1R1, position_S1R1));
    const places = parts.map(({ valueScales }) => Cast(RangeAlong(valueScales, 3), "int32"));
    const seen = [
      Less(places[0]!, inAll(contextRows_S111)),
      LessOrEqual(places[1]!, Sub(position_S1R1, contextEnds_S111)),
      Less(places[2]!, inAll(Reshape(prefixes.rows, ["sequences", 1, 1, 1]))),
    ];
    const biases = seen.map((isSeen) =>
      Where(isSeen, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE)),
    );
    return {
      queries,
      rows,
      biases,
      bias: Concat(biases, 3),
      sizes: sizesAlong(biases, 3),
      rounding: summedRounding(position_S1R1),
      shared: prefixes.queriesOf(position_S1R1),
      sharedDigits: prefixes.queriesOf(Concat([position_S1R1, position_S1R1], 2)),
    };
  }

  let readers: Readers | undefined;
  return function attendSlots(layer, q, k, v) {
    const context = storedPart("context", "sequences", layer);
    const fresh = freshPart(layer, rounding.round(k, type), rounding.round(v, type));
    const shared = storedPart("shared", "prefixes", layer);
    const isLast = layer === spec.numLayers - 1;
    const parts = [context, fresh, shared];
    if (isLast) readers = readersOf(Unsqueeze(Gather(position_N, lastTokens), [1]), 1, parts);
    readers ??= readersOf(Gather(position_N, queriesOf.tokens), "queries", parts);
    const { queries, rows, bias, biases, sizes, sharedDigits } = readers;
    const q_SGQRD = isLast
      ? Reshape(q, ["sequences", groups, 1, repeats, headDim])
      : Transpose(queriesOf.split(q, [groups, repeats]), [0, 2, 1, 3, 4]);
    const rounded = roundQueries(rounding, Reshape(q_SGQRD, ["sequences", groups, rows, headDim]));
    const products = [
      blockProducts(rounded.values, context),
      keyProducts(rounded.values, fresh.keys, fresh.keyScales),
      prefixes.each(rounded.values, readers.shared, (values) => blockProducts(values, shared)),
    ];
    const scores = Add(Mul(Concat(products, 3), rounded.scales), bias);
    const scales = [context.valueScales, fresh.valueScales, prefixes.toSequences(shared.valueScales)];
    const { digits, unit } = eightBitShares(scores, Concat(scales, 3), readers.rounding);
    const shares = SplitLike(digits, biases, 3, sizes);
    const sums = [
      valueSums(shares[0]!, context.values),
      valueSums(shares[1]!, fresh.values),
      prefixes.each(shares[2]!, sharedDigits, (part) => valueSums(part, shared.values)),
    ];
    const mixed = mixedValues(
      sums.reduce((a, b) => Add(a, b)),
      unit,
    );
    if (isLast) return Reshape(mixed, [1, "sequences", numHeads * headDim]);
    const mixed_SGQRD = Reshape(mixed, ["sequences", groups, queries, repeats, headDim]);
    return queriesOf.join(Transpose(mixed_SGQRD, [0, 2, 1, 3, 4]));
  };
}

/** `keyProducts` with keys in blocks. @param queries [S, G, R, D] @returns [S, G, R, B*W] */
function blockProducts(queries: Tensor, { keys, keyScales, valueScales }: Part): Tensor {
  const products_SGBRW = keyProducts(Unsqueeze(queries, [2]), keys, keyScales);
  const rows = Transpose(products_SGBRW, [0, 1, 3, 2, 4]);
  return Reshape(rows, [...queries.shape.slice(0, 3), valueScales.shape[3]!]);
}
