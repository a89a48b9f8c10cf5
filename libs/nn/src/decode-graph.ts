/**
 * The decoder for generation: attention over keys and values of earlier runs, which the caller keeps.
 *
 * Letters: N new tokens, S sequences, Q queries per sequence (the most new tokens of one, padded), L context positions
 * per sequence (padded), W wanted logits, C hidden size, H query heads, G key/value heads, R = H / G, D head size,
 * V vocabulary.
 *
 * Everything but attention runs on the N new tokens, without padding. Of the keys and values, only those of the new tokens
 * are outputs, because onnxruntime copies outputs but not inputs.
 */
import { Concat, type EightBitType, Gather, Graph, Reshape, type Tensor } from "@hone/tensor";
import { declareQueries, type Queries } from "./attention/cached-attention.ts";
import { eightBitSlotAttend } from "./attention/eight-bit-slots.ts";
import { pooledAttend } from "./attention/pooled-attention.ts";
import { type SlotTokens, slotAttend } from "./attention/slot-attention.ts";
import { NewSlotRows } from "./attention/slot-rows.ts";
import type { ModelSpec } from "./model/model-spec.ts";
import { EMBEDDING, headParameter, layerOf, listParameters, type ParameterInfo } from "./model/parameters.ts";
import { outputMasses } from "./probability-mass.ts";
import { quantizedLinear } from "./quantization/quantized-linear.ts";
import { listQuantized, listUnquantized } from "./quantization/quantized-weights.ts";
import { type Attend, buildHead, buildTransformer, weightInitializers, weightInputs } from "./transformer.ts";

/** How earlier keys and values are stored: see pooled-attention.ts and slot-attention.ts. */
export type ContextLayout = "pooled" | "slots";

/** From this width on, slots are faster because contexts are expensive to copy. Both give the same bits in any batch. */
const MIN_SLOTS_WIDTH = 256;

export function contextLayoutFor(spec: ModelSpec): ContextLayout {
  return spec.hiddenSize >= MIN_SLOTS_WIDTH ? "slots" : "pooled";
}

export interface DecodeGraphOptions {
  /** @default depends on the size of the model */
  readonly layout?: ContextLayout;
  /** See `TransformerInputs`. With pooled contexts weights are on the right, where sums do not depend on the number of rows. */
  readonly isWeightLeft?: boolean;
  /** Quantizes the weights, which the graph then takes as quantized-weights.ts makes them, on the right. @default float32 */
  readonly eightBits?: EightBitType | undefined;
}

/**
 * Parameters that the graph takes as inputs, which onnxruntime reads where they are. What belongs to the session it copies, twice
 * while the session is made. So an embedding that is only looked up is an input, and so are the layers' weights on the left side
 * of their products, where onnxruntime does not pack them. A head is packed.
 */
export function fedParameters(
  spec: ModelSpec,
  { isWeightLeft = false, eightBits }: Pick<DecodeGraphOptions, "isWeightLeft" | "eightBits">,
): ParameterInfo[] {
  const isOnlyLookedUp = eightBits !== undefined || headParameter(spec) !== EMBEDDING;
  return listParameters(spec).filter(({ name }) =>
    name === EMBEDDING ? isOnlyLookedUp : isWeightLeft && layerOf(name) !== undefined,
  );
}

/**
 * Builds the graph. It has the inputs of {@link fedParameters}, of the attention, of cached-attention.ts and of
 * probability-mass.ts, and the following, int32:
 *
 *   tokenIds [1, N], positionIds [1, N]   the new tokens
 *   lastTokens [S]                        the last new token of each sequence
 *   wantedSequences [W]                   the sequences whose logits after their last token are wanted
 *
 * Outputs: logits [1, W, V]; the outputs of probability-mass.ts; and the new keys and values. Pooled: newKeyValues
 * [1, N, 2*layers*G*D], keys of layer 0, 1, ..., then values. Slots: the outputs of slot-rows.ts.
 */
export function buildDecodeGraph(
  spec: ModelSpec,
  { layout = contextLayoutFor(spec), eightBits, isWeightLeft = false }: DecodeGraphOptions = {},
): Graph {
  const graph = new Graph("decode");
  const fed = weightInputs(graph, fedParameters(spec, { isWeightLeft, eightBits }));
  const parameters = eightBits === undefined ? listParameters(spec) : listUnquantized(spec);
  const kept = parameters.filter(({ name }) => fed[name] === undefined);
  const weights = { ...fed, ...weightInitializers(graph, kept) };
  const linear = eightBits && quantizedLinear(graph, listQuantized(spec), eightBits);
  const tokenIds = graph.input("tokenIds", "int32", [1, "tokens"]);
  const positionIds = graph.input("positionIds", "int32", [1, "tokens"]);
  const lastTokens = graph.input("lastTokens", "int32", ["sequences"]);
  const wantedSequences = graph.input("wantedSequences", "int32", ["wanted"]);
  const queries = declareQueries(graph);
  const pooled: { readonly keys: Tensor[]; readonly values: Tensor[] } = { keys: [], values: [] };
  const newRows = new NewSlotRows();
  const attend =
    layout === "slots"
      ? attendSlots(graph, spec, queries, { positionIds, lastTokens }, newRows, eightBits)
      : attendPools(graph, spec, queries, pooled, eightBits);
  const hidden = buildTransformer(graph, spec, {
    tokenIds,
    positionIds,
    weights,
    attend,
    isWeightLeft,
    linear,
    ...(layout === "slots" && { readers: lastTokens }),
  });
  const last = layout === "slots" ? hidden : Gather(hidden, lastTokens, 1);
  const logits = buildHead(spec, Gather(last, wantedSequences, 1), weights, linear);
  graph.output("logits", logits);
  if (layout === "pooled") graph.output("newKeyValues", Concat([...pooled.keys, ...pooled.values], 2));
  else newRows.output(graph);
  outputMasses(graph, logits, spec.vocabSize);
  return graph;
}

function attendSlots(
  graph: Graph,
  spec: ModelSpec,
  queries: Queries,
  tokens: SlotTokens,
  newRows: NewSlotRows,
  eightBits: EightBitType | undefined,
): Attend {
  return eightBits === undefined
    ? slotAttend(graph, spec, queries, tokens, newRows)
    : eightBitSlotAttend(graph, spec, queries, tokens, newRows, eightBits);
}

/** @param kept takes the new rows of each layer [1, N, G*D] */
function attendPools(
  graph: Graph,
  spec: ModelSpec,
  queries: Queries,
  kept: { readonly keys: Tensor[]; readonly values: Tensor[] },
  eightBits: EightBitType | undefined,
): Attend {
  const attend = pooledAttend(graph, spec, queries, eightBits);
  const width = spec.numKeyValueHeads * spec.headDim;
  return function attendAndKeep(layer, q, k, v) {
    kept.keys.push(Reshape(k, [1, "tokens", width]));
    kept.values.push(Reshape(v, [1, "tokens", width]));
    return attend(layer, q, k, v);
  };
}
