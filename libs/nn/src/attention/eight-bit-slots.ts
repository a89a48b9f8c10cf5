/**
 * Attention for generation with large models in eight bits: earlier keys and values lie in slots, as whole numbers (eight-bit-attention.ts).
 *
 * Letters as in slot-attention.ts and shared-prefix.ts. As sums have no order, a context is read in three parts, where they are: the rows
 * that it has in common with other sequences, those of its own in a slot, and the new rows of the run. A run that decodes, of one token for each
 * sequence, leaves out the first part if no sequence has rows in it, and another run the first two if none has rows in either. Other parts
 * without rows have a masked one. Keys are in blocks of columns (slot-rows.ts), B of W positions, of which slots have KEY_BLOCK.
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
  Concat,
  type Dim,
  type EightBitType,
  Equal,
  type Graph,
  Greater,
  If,
  Max,
  Mul,
  multiplyDims,
  ReduceMax,
  Reshape,
  ReshapeAssuming,
  Shape,
  SplitLike,
  type Tensor,
  Transpose,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import { type RoundedRows, RowRounding } from "../quantization/row-rounding.ts";
import type { Attend } from "../transformer.ts";
import type { Queries } from "./cached-attention.ts";
import {
  type AttendedRows,
  attendRounded,
  eightBitShares,
  keyProducts,
  mixedValues,
  roundQueries,
  valueSums,
} from "./eight-bit-attention.ts";
import { sharedPrefixes } from "./shared-prefix.ts";
import type { SlotTokens } from "./slot-attention.ts";
import { type NewSlotRows, type SlotRowName, slotTensor } from "./slot-rows.ts";
import { type Sight, type Sights, slotSights } from "./slot-sight.ts";

/** A part of the contexts: L rows of each sequence. */
interface Part {
  /** `keyProducts` of queries: [S, G, R, D] -> [S, G, R, L] */
  products(queries: Tensor): Tensor;
  /** [S, G, 1, L] */
  valueScales(): Tensor;
  /** `valueSums` of digits: [S, G, 2*R, L] -> [S, G, 2*R, D] */
  sums(digits: Tensor): Tensor;
}

/** The rounded rows of a layer's new tokens [1, N, heads, D]; in the last layer, queries are those of last tokens [1, S, heads, D]. */
interface NewRows {
  readonly queries: RoundedRows;
  readonly keys: RoundedRows;
  readonly values: RoundedRows;
}

/** @param newRows takes the new rows of each layer */
export function eightBitSlotAttend(
  graph: Graph,
  spec: ModelSpec,
  queriesOf: Queries,
  { positionIds, lastTokens }: SlotTokens,
  newRows: NewSlotRows,
  type: EightBitType,
): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const contextRows = graph.input("contextRows", "int32", ["sequences"]);
  const contextEnds = graph.input("contextEnds", "int32", ["sequences"]);
  const prefixes = sharedPrefixes(graph, spec);
  const sequences = { queries: queriesOf, prefixes, positionIds, lastTokens, contextRows, contextEnds };
  const rounding = new RowRounding(graph);
  const largest = (x: Tensor) => ReduceMax(x, { keepDims: false });
  const mostShared = largest(prefixes.rows);
  const hasShared = Greater(mostShared, 0);
  const hasStored = Greater(Max(mostShared, largest(contextRows)), 0);
  const isDecoding = Equal(largest(Shape(queriesOf.tokens, 1, 2)), 1);
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

  /** The new rows of each sequence; padding repeats the last one. */
  function freshRows({ keys, values }: NewRows): AttendedRows {
    const arrange = (rows: Tensor, order: number[]) => Transpose(queriesOf.split(rows, [groups]), order);
    return {
      keys: arrange(keys.values, [0, 2, 3, 1]),
      keyScales: arrange(keys.scales, [0, 2, 3, 1]),
      values: arrange(values.values, [0, 2, 1, 3]),
      valueScales: arrange(values.scales, [0, 2, 3, 1]),
    };
  }

  /** The same where each sequence has one token, in the order of the sequences. */
  function freshRow({ keys, values }: NewRows): AttendedRows {
    const arrange = (rows: Tensor, shape: number[]) => ReshapeAssuming(rows, ["sequences", groups, ...shape]);
    return {
      keys: arrange(keys.values, [headDim, 1]),
      keyScales: arrange(keys.scales, [1, 1]),
      values: arrange(values.values, [1, headDim]),
      valueScales: arrange(values.scales, [1, 1]),
    };
  }

  /** Queries [S, G, R, ...] of sequences that have one each. */
  const oneQuery = (rows: Tensor) =>
    ReshapeAssuming(rows, ["sequences", groups, repeats, rows.shape.at(-1)!]);
  /** Queries of all new tokens. */
  const allQueries = (rows: Tensor) =>
    Reshape(Transpose(queriesOf.split(rows, [groups, repeats]), [0, 2, 1, 3, 4]), [
      "sequences",
      groups,
      multiplyDims("queries", repeats),
      rows.shape.at(-1)!,
    ]);
  const eachOf = ({ values, scales }: RoundedRows, arrange: (rows: Tensor) => Tensor): RoundedRows => ({
    values: arrange(values),
    scales: arrange(scales),
  });

  /** `attendRounded` over the last parts. @param first of them */
  function attendParts(queries: RoundedRows, parts: readonly Part[], first: number, sight: Sight): Tensor {
    const read = parts.slice(first);
    const products = Concat(
      read.map((part) => part.products(queries.values)),
      3,
    );
    const valueScales = Concat(
      read.map((part) => part.valueScales()),
      3,
    );
    const scores = Add(Mul(products, queries.scales), sight.biases[first]!);
    const shares = eightBitShares(scores, valueScales, sight.rounding);
    const digits = Concat([shares.first, shares.second], 2);
    const byPart = SplitLike(digits, sight.parts.slice(first), 3, sight.sizes[first]);
    const sums = read.map((part, at) => part.sums(byPart[at]!));
    return mixedValues(
      sums.reduce((a, b) => Add(a, b)),
      shares.unit,
    );
  }

  let sights: Sights | undefined;
  return function attendSlots(layer, q, k, v) {
    const shared = storedRows("shared", "prefixes", layer);
    const own = storedRows("context", "sequences", layer);
    const rows: NewRows = {
      queries: roundQueries(rounding, q),
      keys: rounding.round(k, type),
      values: rounding.round(v, type),
    };
    newRows.add("Keys", rows.keys.values);
    newRows.add("Values", rows.values.values);
    newRows.add("KeyScales", rows.keys.scales);
    newRows.add("ValueScales", rows.values.scales);
    const partsOf = (fresh: AttendedRows, { shared: queries, sharedDigits }: Sight): Part[] => {
      const sumsOf = (digits: Tensor) =>
        prefixes.each(digits, sharedDigits, (all) => valueSums(all, shared.values));
      return [
        {
          products: (x) => prefixes.each(x, queries, (all) => blockProducts(all, shared)),
          valueScales: () => prefixes.toSequences(shared.valueScales),
          // Without a prefix, a sequence gets the sums of another one.
          sums: (digits) => Where(isSharing_S111, sumsOf(digits), 0),
        },
        partOf(own, blockProducts),
        partOf(fresh, (x, { keys, keyScales }) => keyProducts(x, keys, keyScales)),
      ];
    };
    const isLast = layer === spec.numLayers - 1;
    sights ??= slotSights(graph, repeats, sequences, shared.valueScales, own.valueScales);
    const { all, last, single } = sights;

    const joinOne = (mixed: Tensor) =>
      ReshapeAssuming(mixed, [1, isLast ? "sequences" : "tokens", numHeads * headDim]);
    function attendDecoding(): Tensor {
      const [queries, parts] = [eachOf(rows.queries, oneQuery), partsOf(freshRow(rows), single)];
      const attend = (first: number) => () => [attendParts(queries, parts, first, single)];
      return joinOne(If(hasShared, attend(0), attend(1))[0]!);
    }

    function attendAll(): Tensor {
      const [arrange, sight] = isLast ? [oneQuery, last] : [allQueries, all];
      const [queries, fresh] = [eachOf(rows.queries, arrange), freshRows(rows)];
      const [mixed] = If(
        hasStored,
        () => [attendParts(queries, partsOf(fresh, sight), 0, sight)],
        () => [attendRounded(queries, fresh, sight.biases[2]!, sight.rounding)],
      );
      if (isLast) return joinOne(mixed!);
      const mixed_SGQRD = Reshape(mixed!, ["sequences", groups, "queries", repeats, headDim]);
      return queriesOf.join(Transpose(mixed_SGQRD, [0, 2, 1, 3, 4]));
    }
    return If(
      isDecoding,
      () => [attendDecoding()],
      () => [attendAll()],
    )[0]!;
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
