/**
 * Attention for generation with large models: earlier keys and values are read where they lie.
 *
 * Letters as in decode-graph.ts. Every sequence of the run has a slot with its earlier rows, in order and padded to the
 * run's L; slots are inputs, which onnxruntime does not copy. A query attends to [earlier | new] by one softmax over both
 * and the sum of two products. How the sum is split follows where the context was cut, so a context that is computed
 * again in other pieces gives the same up to rounding, not the same bits.
 *
 * The R query heads of a group are R queries of one head, so keys and values are never repeated.
 *
 * Inputs:
 *
 *   keys.0, values.0, ...     slots of each layer [S, G, L, D], float32; what lies behind a context is masked and must be
 *                             finite. L may be 0
 *   contextLengths [S]        earlier rows of each sequence, int32
 */
import {
  Add,
  Cast,
  Concat,
  FusedMatMul,
  type Graph,
  Less,
  LessOrEqual,
  MatMul,
  multiplyDims,
  RangeAlong,
  Reshape,
  Softmax,
  SplitLike,
  type Tensor,
  Transpose,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import { MASKED_SCORE } from "./attention.ts";
import { contextInputs, type Queries } from "./cached-attention.ts";
import type { ModelSpec } from "./model-spec.ts";
import type { Attend } from "./transformer.ts";

export function slotAttend(graph: Graph, spec: ModelSpec, queriesOf: Queries): Attend {
  const { numHeads, numKeyValueHeads: groups, headDim } = spec;
  const repeats = numHeads / groups;
  const queries = multiplyDims(repeats, "queries");
  const contextLengths = graph.input("contextLengths", "int32", ["sequences"]);
  const slots = (name: string) => graph.input(name, "float32", ["sequences", groups, "context", headDim]);
  const inputs = Array.from({ length: spec.numLayers }, (_, layer) => {
    const { keys, values } = contextInputs(layer);
    return { keys: slots(keys), values: slots(values) };
  });
  const biasOf = (isSeen: Tensor) =>
    Where(isSeen, graph.scalar("float32", 0), graph.scalar("float32", MASKED_SCORE));

  const position_L = Cast(RangeAlong(inputs[0]!.keys, 2), "int32");
  const earlier_S11L = Unsqueeze(biasOf(Less(position_L, Unsqueeze(contextLengths, [1]))), [1, 2]);

  /** [1, N, heads, D] -> [S, G, heads/G * Q, D] */
  const byGroup = (x: Tensor, perGroup: number) => {
    const x_SGQRD = Transpose(queriesOf.split(x, [groups, perGroup]), [0, 2, 1, 3, 4]);
    return Reshape(x_SGQRD, ["sequences", groups, multiplyDims(perGroup, "queries"), headDim]);
  };
  /** A query sees the new tokens of its sequence up to its own, [Q*R, Q]. */
  const causalBias = (newKeys_SGQD: Tensor) => {
    const at_Q = RangeAlong(newKeys_SGQD, 2);
    const reader_QR = Add(Unsqueeze(at_Q, [1]), graph.constant("int64", new Array(repeats).fill(0)));
    return biasOf(LessOrEqual(at_Q, Unsqueeze(Reshape(reader_QR, [queries]), [1])));
  };
  let new_TQ: Tensor | undefined;

  return function attendSlots(layer, q, k, v) {
    const { keys, values } = inputs[layer]!;
    const q_SGTD = byGroup(q, repeats);
    const newKeys_SGQD = byGroup(k, 1);
    new_TQ ??= causalBias(newKeys_SGQD);
    const scoresOf = (k_SGLD: Tensor) =>
      FusedMatMul(q_SGTD, k_SGLD, { transB: true, alpha: 1 / Math.sqrt(headDim) });
    const earlier = Add(scoresOf(keys), earlier_S11L);
    const fresh = Add(scoresOf(newKeys_SGQD), new_TQ);
    const [toEarlier, toFresh] = SplitLike(Softmax(Concat([earlier, fresh], 3)), [earlier, fresh], 3);
    const mixed_SGTD = Add(MatMul(toEarlier!, values), MatMul(toFresh!, byGroup(v, 1)));
    const mixed_SGQRD = Reshape(mixed_SGTD, ["sequences", groups, "queries", repeats, headDim]);
    return queriesOf.join(Transpose(mixed_SGQRD, [0, 2, 1, 3, 4]));
  };
}
