/**
 * Attention for generation with large models: earlier keys and values are read in place, without copying.
 *
 * Letters as in decode-graph.ts. Every sequence of the run has a slot with its earlier rows, in order and padded to the
 * run's L; slots are inputs, which onnxruntime does not copy. A query attends to [earlier | new] by one softmax over both
 * parts and the sum of two products. The split of this sum depends on how many rows are new, so a context that is recomputed
 * in other pieces gives the same result up to rounding, but not the same bits.
 *
 * The R query heads of a group share its keys and values by broadcasting, and the queries of each head form a separate
 * product. If it has one query, onnxruntime reads the slot once and directly. For a product with a few rows it would first
 * reorder the slot's data, which costs more than the product. It reads directly only for products without a factor, so the
 * queries are scaled beforehand, by {@link slotQueryFactor}.
 *
 * In the last layer, only the result of each sequence's last token is needed, so each sequence has one query there.
 *
 * Inputs:
 *
 *   keys.0, values.0, ...     slots of each layer [S, G, 1, L, D], float32; the rows after a context are masked and must be
 *                             finite. L may be 0
 *   contextLengths [S]        number of earlier rows of each sequence, int32
 */
import {
  Add,
  And,
  Cast,
  Concat,
  FusedMatMul,
  type Graph,
  GreaterOrEqual,
  Less,
  LessOrEqual,
  MatMul,
  RangeAlong,
  Reshape,
  Slice,
  Softmax,
  SplitLike,
  Sub,
  sizesAlong,
  type Tensor,
  Transpose,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Attend } from "../transformer.ts";
import { MASKED_SCORE } from "./attention.ts";
import { contextInputs, type Queries } from "./cached-attention.ts";

/** The factor by which the queries for {@link slotAttend} must be multiplied. */
export function slotQueryFactor(spec: ModelSpec): number {
  return 1 / Math.sqrt(spec.headDim);
}

/** @param lastTokens [S]: the last new token of each sequence, int32; they are the `readers` of the decoder. */
export function slotAttend(graph: Graph, spec: ModelSpec, queriesOf: Queries, lastTokens: Tensor): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const contextLengths = graph.input("contextLengths", "int32", ["sequences"]);
  const slots = (name: string) => graph.input(name, "float32", ["sequences", groups, 1, "context", headDim]);
  const inputs = Array.from({ length: spec.numLayers }, (_, layer) => {
    const { keys, values } = contextInputs(layer);
    return { keys: slots(keys), values: slots(values) };
  });
  const biasOf = (isSeen: Tensor) =>
    Where(isSeen, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));

  const position_L = Cast(RangeAlong(inputs[0]!.keys, 3), "int32");
  const isEarlier_S111L = Unsqueeze(Less(position_L, Unsqueeze(contextLengths, [1])), [1, 2, 3]);

  /** [1, N, heads, D] -> [S, G, heads/G, Q, D] */
  const byGroup = (x: Tensor, perGroup: number) =>
    Transpose(queriesOf.split(x, [groups, perGroup]), [0, 2, 3, 1, 4]);
  /** Shared by all layers but the last: a query sees its sequence's context and its new tokens up to the query's own. */
  const shareOf = (newKeys_SG1QD: Tensor) => {
    const at_Q = RangeAlong(newKeys_SG1QD, 3);
    const isNew_QQ = LessOrEqual(at_Q, Unsqueeze(at_Q, [1]));
    const always_Q1 = GreaterOrEqual(Unsqueeze(at_Q, [1]), graph.scalar("int64", 0));
    const always_S1111 = GreaterOrEqual(Unsqueeze(contextLengths, [1, 2, 3, 4]), graph.scalar("int32", 0));
    const isSeen = Concat([And(isEarlier_S111L, always_Q1), And(isNew_QQ, always_S1111)], 4);
    return { bias: biasOf(isSeen), sizes: sizesAlong([inputs[0]!.keys, newKeys_SG1QD], 3) };
  };
  /** The last layer's query sees all new tokens of its sequence, but not the padding after them. */
  const lastBias = (newKeys_SG1QD: Tensor) => {
    const lastAt_S1 = Sub(Unsqueeze(lastTokens, [1]), Slice(queriesOf.tokens, 1, 0, 1));
    const isNew_SQ = LessOrEqual(Cast(RangeAlong(newKeys_SG1QD, 3), "int32"), lastAt_S1);
    return biasOf(Concat([isEarlier_S111L, Unsqueeze(isNew_SQ, [1, 2, 3])], 4));
  };
  let shared: ReturnType<typeof shareOf> | undefined;

  return function attendSlots(layer, q, k, v) {
    const { keys, values } = inputs[layer]!;
    const isLast = layer === spec.numLayers - 1;
    const q_SGRQD = isLast ? Reshape(q, ["sequences", groups, repeats, 1, headDim]) : byGroup(q, repeats);
    const newKeys_SG1QD = byGroup(k, 1);
    shared ??= shareOf(newKeys_SG1QD);
    const bias = isLast ? lastBias(newKeys_SG1QD) : shared.bias;
    const scoresOf = (k_SG1LD: Tensor) => FusedMatMul(q_SGRQD, k_SG1LD, { transB: true });
    const parts = [scoresOf(keys), scoresOf(newKeys_SG1QD)];
    const shares = Softmax(Add(Concat(parts, 4), bias));
    const [toEarlier, toFresh] = SplitLike(shares, parts, 4, shared.sizes);
    const mixed_SGRQD = Add(MatMul(toEarlier!, values), MatMul(toFresh!, byGroup(v, 1)));
    if (isLast) return Reshape(mixed_SGRQD, [1, "sequences", numHeads * headDim]);
    return queriesOf.join(Transpose(mixed_SGRQD, [0, 3, 1, 2, 4]));
  };
}
