/**
 * The graphs of a training step: forward only, and forward with the gradient of the loss.
 *
 * Letters: B rows, T tokens of a row, C hidden size, U positions whose prediction is read, E entries (trained tokens;
 * several may read one position), V vocabulary.
 *
 * The caller does the embedding lookup and its gradient: rows of the table are copied and their gradients added up outside
 * the graph, in the order of the tokens, which fixes the bits of the sums. The head works in chunks (head-loss.ts).
 */
import {
  type AdaptedModel,
  type Decoder,
  decoderOf,
  type EightBitTraining,
  EMBEDDING,
  headParameter,
  headParameters,
  type Linear,
  layerOf,
  listAll,
  listTrained,
  type ModelSpec,
  packedAttend,
  straightThroughLinear,
  type WeightTensors,
  weightInputs,
} from "@hone/nn";
import {
  After,
  AfterReserving,
  addDims,
  type Dim,
  Gather,
  Graph,
  gradientsFrom,
  Reshape,
  type Tensor,
} from "@hone/tensor";
import {
  buildHeadLoss,
  buildHeadScores,
  chunkPositions,
  type GraphObjective,
  type HeadChunks,
} from "./head-loss.ts";
import { chunkInput, gradientOutput, INPUT, OUTPUT } from "./training-names.ts";
import { buildValueLoss, buildValues } from "./value-head.ts";

/** Settings that limit the memory and the computation of a graph. */
export interface GraphBounds {
  readonly chunks: HeadChunks;
  /** Number of pieces of a row that attention processes one after the other (packed-attention.ts of the model). */
  readonly rowPieces: number;
  /** Number of layers, from the first, that are recomputed in the backward pass instead of being kept. */
  readonly recomputedLayers: number;
  /** Computes products in eight bits; their matrices are then inputs (`straightThroughLinear`). @default float32 */
  readonly eightBits?: EightBitTraining | undefined;
}

/** What a forward pass computes. */
export interface ForwardObjective {
  /** The logits are divided by this. */
  readonly temperature: number;
  /** Whether the sums of squared probabilities are wanted, too. */
  readonly hasSquares: boolean;
}

/** Builds the graph for log-probabilities and entropies of the entries, or for their values; weights are inputs. */
export function buildForwardGraph(
  model: AdaptedModel,
  { temperature, hasSquares }: ForwardObjective,
  bounds: Omit<GraphBounds, "recomputedLayers">,
): Graph {
  const { chunks } = bounds;
  const graph = new Graph("forward");
  const { weights, linear, read } = buildBody(graph, model, bounds);
  if (model.spec.head === "value") {
    graph.output(OUTPUT.score, buildValues(graph, read, weights));
    return graph;
  }
  const inputs = { weights, linear, read, temperature, chunks };
  const scores = buildHeadScores(graph, model.spec, inputs, hasSquares);
  graph.output(OUTPUT.score, scores.logprob);
  graph.output(OUTPUT.entropy, scores.entropy);
  if (scores.squares !== undefined) graph.output(OUTPUT.squares, scores.squares);
  return graph;
}

/**
 * Builds the same graph with the loss and its gradient with respect to every trained parameter; if the embedding is trained,
 * with respect to the embedded tokens:
 *
 *   loss = sum over entries of weight * (sum of the terms of the entry)
 *          - sum over positions of entropyWeight * entropy
 *
 * Without `hasEntropyBonus`, as always with a value head, the second sum and its input are left out.
 */
export function buildTrainingGraph(
  model: AdaptedModel,
  objective: GraphObjective,
  { recomputedLayers, ...bounds }: GraphBounds,
): Graph {
  const graph = new Graph(`train ${objective.terms.map(({ name }) => name).join(" + ")}`);
  const reserved = graph.input(INPUT.reserved, "int64", [1]);
  const { chunks } = bounds;
  const body = buildBody(graph, model, { ...bounds, reserved });
  const { weights, read } = body;
  const trained = listTrained(model).map(({ name }) => name);
  const readGradient = outputHead(graph, model.spec, body, objective, { chunks, trained });

  // The loss depends on the table only through the embedded tokens and, if it is also the head, through the logits.
  const inHead = headParameters(model.spec);
  const inBody = trained.filter((name) => name !== EMBEDDING && !inHead.includes(name));
  /** Differentiates from `output` back to `input`, and makes the gradients of the parameters between them outputs. */
  const goBack = (output: Tensor, gradient: Tensor, input: Tensor, names: readonly string[]): Tensor => {
    const wanted = [input, ...names.map((name) => weights[name]!)];
    const [inputGradient, ...found] = gradientsFrom(graph, [{ tensor: output, gradient }], wanted);
    names.forEach((name, i) => {
      graph.output(gradientOutput(name), found[i]!);
    });
    return inputGradient!;
  };
  const { decoder, states } = body;
  let gradient = goBack(
    read,
    readGradient,
    states.at(-1)!,
    inBody.filter((name) => layerOf(name) === undefined),
  );
  for (let layer = model.spec.numLayers - 1; layer >= 0; layer--) {
    const isKept = layer >= recomputedLayers;
    const input = isKept ? states[layer]! : After(states[layer]!, gradient);
    const output = isKept ? states[layer + 1]! : decoder.layer(layer, input);
    const names = inBody.filter((name) => layerOf(name) === layer);
    gradient = goBack(output, gradient, input, names);
  }
  if (trained.includes(EMBEDDING)) graph.output(gradientOutput(INPUT.embedded), gradient);
  return graph;
}

/** Makes loss, scores and the gradients of the head outputs. @returns [U, C] the gradient of the hidden states that it reads */
function outputHead(
  graph: Graph,
  spec: ModelSpec,
  { weights, linear, read }: Body,
  objective: GraphObjective,
  { chunks, trained }: { readonly chunks: HeadChunks; readonly trained: readonly string[] },
): Tensor {
  if (spec.head === "value") {
    const head = buildValueLoss(graph, spec, { weights, read }, objective);
    graph.output(OUTPUT.loss, head.loss);
    graph.output(OUTPUT.score, head.value);
    for (const [name, gradient] of Object.entries(head.headGradients)) {
      graph.output(gradientOutput(name), gradient);
    }
    return head.readGradient;
  }
  const name = headParameter(spec);
  const inputs = { weights, linear, read, temperature: objective.temperature, chunks };
  const head = buildHeadLoss(graph, spec, inputs, objective, trained.includes(name));
  graph.output(OUTPUT.loss, head.loss);
  graph.output(OUTPUT.score, head.logprob);
  graph.output(OUTPUT.entropy, head.entropy);
  if (head.headGradient !== undefined) graph.output(gradientOutput(name), head.headGradient);
  return head.readGradient;
}

interface Body {
  readonly weights: WeightTensors;
  /** Undefined = in float32, with the weights. */
  readonly linear: Linear | undefined;
  readonly decoder: Decoder;
  /** [B, T, C] hidden states before the first layer and after each layer. */
  readonly states: readonly Tensor[];
  /** [U, C] final hidden states of the positions. */
  readonly read: Tensor;
}

function buildBody(
  graph: Graph,
  model: AdaptedModel,
  {
    chunks,
    rowPieces,
    eightBits,
    reserved,
  }: Omit<GraphBounds, "recomputedLayers"> & { readonly reserved?: Tensor },
): Body {
  const { spec, lora } = model;
  const weights = weightInputs(graph, listAll(model));
  const visibleEnds = Array.from({ length: rowPieces }, (_, piece) =>
    graph.input(chunkInput(INPUT.visibleEnd, piece), "int32", ["rows", `tokens.${piece}`]),
  );
  const tokens = visibleEnds.map(({ shape }) => shape[1]!).reduce(addDims);
  const embedded = graph.input(INPUT.embedded, "float32", ["rows", tokens, spec.hiddenSize]);
  const fedPositionIds = graph.input(INPUT.positionIds, "int32", ["rows", tokens]);
  const positionIds = reserved === undefined ? fedPositionIds : AfterReserving(fedPositionIds, reserved);
  const all = Array.from({ length: chunks.count }, (_, chunk) => chunkPositions(chunk));
  const positions = graph.input(INPUT.positions, "int32", [all.reduce<Dim>(addDims, 0)]);

  const linear = eightBits && straightThroughLinear(graph, spec, eightBits, weights);
  const attend = packedAttend(
    graph,
    spec,
    visibleEnds,
    eightBits && { type: eightBits.type, positions: positionIds },
  );
  const decoder = decoderOf(graph, spec, { embedded, positionIds, weights, lora, attend, linear });
  const states = [decoder.start];
  for (let layer = 0; layer < spec.numLayers; layer++) states.push(decoder.layer(layer, states[layer]!));
  const hidden_BTC = decoder.finish(states.at(-1)!);
  const read = Gather(Reshape(hidden_BTC, [-1, spec.hiddenSize]), positions, 0, { isDistinct: true });
  return { weights, linear, decoder, states, read };
}
