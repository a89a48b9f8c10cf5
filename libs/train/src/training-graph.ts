/**
 * The graphs of a training step: forward only, and forward with the gradient of the loss.
 *
 * Letters: B rows, T tokens of a row, C hidden size, U positions whose prediction is read, E entries (trained tokens;
 * several may read one position), V vocabulary.
 *
 * The embedding lookup and its gradient are the caller's: rows of the table are copied in and added up outside the
 * graph, in the order of the tokens, which fixes the bits of the sums. The head works in chunks (head-loss.ts).
 */
import {
  type AdaptedModel,
  buildTransformer,
  EMBEDDING,
  headParameter,
  listAll,
  listTrained,
  packedAttend,
  type WeightTensors,
  weightInputs,
} from "@hone/nn";
import { addDims, type Dim, Gather, Graph, gradientsFrom, Reshape, type Tensor } from "@hone/tensor";
import {
  buildHeadLoss,
  buildHeadScores,
  chunkPositions,
  type GraphObjective,
  type HeadChunks,
} from "./head-loss.ts";
import { gradientOutput, INPUT, OUTPUT } from "./training-names.ts";

/** Log-probabilities and entropies of the entries under the fed weights. */
export function buildForwardGraph(model: AdaptedModel, temperature: number, chunks: HeadChunks): Graph {
  const graph = new Graph("forward");
  const { weights, read } = buildBody(graph, model, chunks);
  const { logprob, entropy } = buildHeadScores(graph, model.spec, { weights, read, temperature, chunks });
  graph.output(OUTPUT.logprob, logprob);
  graph.output(OUTPUT.entropy, entropy);
  return graph;
}

/**
 * The same with the loss and its gradient in every parameter that is trained, and in the embedded tokens where the
 * embedding is one:
 *
 *   loss = sum over entries of weight * (l(entry) + coefficient * kl(entry))
 *          - sum over positions of entropyWeight * entropy
 *
 * Without `hasEntropyBonus` the second sum and its input are left out, without `kl` its term and its input.
 */
export function buildTrainingGraph(
  model: AdaptedModel,
  objective: GraphObjective,
  chunks: HeadChunks,
): Graph {
  const graph = new Graph(`train ${objective.loss.kind}`);
  const { weights, embedded, read } = buildBody(graph, model, chunks);
  const trained = listTrained(model).map(({ name }) => name);
  const headName = headParameter(model.spec);
  const inputs = { weights, read, temperature: objective.temperature, chunks };
  const head = buildHeadLoss(graph, model.spec, inputs, objective, trained.includes(headName));
  graph.output(OUTPUT.loss, head.loss);
  graph.output(OUTPUT.logprob, head.logprob);
  graph.output(OUTPUT.entropy, head.entropy);
  if (head.headGradient !== undefined) graph.output(gradientOutput(headName), head.headGradient);

  const wanted = new Map<string, Tensor>();
  for (const name of trained) {
    // The table is reached through the embedded tokens and, where it is the head, through the logits only.
    if (name === EMBEDDING) wanted.set(INPUT.embedded, embedded);
    else if (name !== headName) wanted.set(name, weights[name]!);
  }
  const seed = { tensor: read, gradient: head.readGradient };
  const found = gradientsFrom(graph, [seed], [...wanted.values()]);
  [...wanted.keys()].forEach((name, i) => {
    graph.output(gradientOutput(name), found[i]!);
  });
  return graph;
}

interface Body {
  readonly weights: WeightTensors;
  /** [B, T, C] */
  readonly embedded: Tensor;
  /** [U, C] hidden states of the positions. */
  readonly read: Tensor;
}

function buildBody(graph: Graph, model: AdaptedModel, chunks: HeadChunks): Body {
  const { spec, lora } = model;
  const weights = weightInputs(graph, listAll(model));
  const embedded = graph.input(INPUT.embedded, "float32", ["rows", "tokens", spec.hiddenSize]);
  const positionIds = graph.input(INPUT.positionIds, "int32", ["rows", "tokens"]);
  const visibleEnd = graph.input(INPUT.visibleEnd, "int32", ["rows", "tokens"]);
  const all = Array.from({ length: chunks.count }, (_, chunk) => chunkPositions(chunk));
  const positions = graph.input(INPUT.positions, "int32", [all.reduce<Dim>(addDims, 0)]);

  const attend = packedAttend(graph, visibleEnd);
  const hidden_BTC = buildTransformer(graph, spec, { embedded, positionIds, weights, lora, attend });
  const read = Gather(Reshape(hidden_BTC, [-1, spec.hiddenSize]), positions, 0, { isDistinct: true });
  return { weights, embedded, read };
}
