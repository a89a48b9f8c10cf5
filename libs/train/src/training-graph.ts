/**
 * The graphs of a training step: forward only, and forward with the gradient of the loss.
 *
 * Letters: B rows, T tokens of a row, C hidden size, U positions whose prediction is read, E entries (trained tokens;
 * several may read one position), V vocabulary.
 *
 * The embedding lookup and its gradient are the caller's: rows of the table are copied in and added up outside the
 * graph, in the order of the tokens, which fixes the bits of the sums.
 */
import {
  type AdaptedModel,
  buildHead,
  buildTransformer,
  EMBEDDING,
  listAll,
  listTrained,
  packedAttend,
  type WeightTensors,
  weightInputs,
} from "@hone/nn";
import {
  Add,
  Exp,
  Gather,
  Graph,
  gradients,
  LogSoftmax,
  Mul,
  Neg,
  ReduceSum,
  Reshape,
  Sub,
  type Tensor,
} from "@hone/tensor";
import { buildKl, type KlConfig } from "./kl.ts";
import { buildLoss, type LossConfig } from "./losses.ts";

/** Names of the inputs beside the parameters. */
export const INPUT = {
  /** float32 [B, T, C]: the embedding rows of the tokens. */
  embedded: "embedded",
  /** int32 [B, T] */
  positionIds: "positionIds",
  /** int32 [B, T] */
  visibleEnd: "visibleEnd",
  /** int32 [U]: distinct indices into B*T. */
  positions: "positions",
  /** int32 [E]: index into U*V, position times V plus token. */
  choices: "choices",
  /** float32 [E] */
  behaviourLogprob: "behaviourLogprob",
  /** float32 [E] */
  advantage: "advantage",
  /** float32 [E] */
  weight: "weight",
  /** float32 [E] */
  referenceLogprob: "referenceLogprob",
  /** float32 [U]: factor of each position's entropy, subtracted from the loss. */
  entropyWeight: "entropyWeight",
} as const;

/** Names of the outputs beside the gradients. */
export const OUTPUT = {
  /** float32 [] */
  loss: "loss",
  /** float32 [E] */
  logprob: "logprob",
  /** float32 [U] */
  entropy: "entropy",
} as const;

/** Output that holds the gradient in a parameter, or in the embedded tokens. */
export function gradientOutput(name: string): string {
  return `gradient:${name}`;
}

/** What a training graph computes; graphs of equal objectives are the same. */
export interface GraphObjective {
  readonly loss: LossConfig;
  /** Logits are divided by it, as they were when the tokens were sampled. */
  readonly temperature: number;
  readonly hasEntropyBonus: boolean;
  /** Added to the loss of every entry; absent = none. */
  readonly kl?: KlConfig | undefined;
}

/** Log-probabilities and entropies of the entries under the fed weights. */
export function buildForwardGraph(model: AdaptedModel, temperature: number): Graph {
  const graph = new Graph("forward");
  const { logprob, entropy } = buildForward(graph, model, temperature);
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
export function buildTrainingGraph(model: AdaptedModel, objective: GraphObjective): Graph {
  const { loss, temperature, hasEntropyBonus, kl } = objective;
  const graph = new Graph(`train ${loss.kind}`);
  const forward = buildForward(graph, model, temperature);
  const perEntry = (name: string) => graph.input(name, "float32", ["entries"]);
  const entryLoss = buildLoss(loss, {
    logprob: forward.logprob,
    behaviourLogprob: perEntry(INPUT.behaviourLogprob),
    advantage: perEntry(INPUT.advantage),
  });
  const penalised =
    kl === undefined
      ? entryLoss
      : Add(
          entryLoss,
          Mul(buildKl(kl.kind, forward.logprob, perEntry(INPUT.referenceLogprob)), kl.coefficient),
        );
  let total = sum(Mul(penalised, perEntry(INPUT.weight)));
  if (hasEntropyBonus) {
    const weight = graph.input(INPUT.entropyWeight, "float32", ["positions"]);
    total = Sub(total, sum(Mul(forward.entropy, weight)));
  }
  graph.output(OUTPUT.loss, total);
  graph.output(OUTPUT.logprob, forward.logprob);
  graph.output(OUTPUT.entropy, forward.entropy);
  const wanted = trainedTensors(model, forward);
  const found = gradients(graph, total, [...wanted.values()]);
  [...wanted.keys()].forEach((name, i) => {
    graph.output(gradientOutput(name), found[i]!);
  });
  return graph;
}

interface Forward {
  readonly weights: WeightTensors;
  readonly embedded: Tensor;
  /** [E] */
  readonly logprob: Tensor;
  /** [U] */
  readonly entropy: Tensor;
}

function buildForward(graph: Graph, model: AdaptedModel, temperature: number): Forward {
  const { spec, lora } = model;
  const weights = weightInputs(graph, listAll(model));
  const embedded = graph.input(INPUT.embedded, "float32", ["rows", "tokens", spec.hiddenSize]);
  const positionIds = graph.input(INPUT.positionIds, "int32", ["rows", "tokens"]);
  const visibleEnd = graph.input(INPUT.visibleEnd, "int32", ["rows", "tokens"]);
  const positions = graph.input(INPUT.positions, "int32", ["positions"]);
  const choices = graph.input(INPUT.choices, "int32", ["entries"]);

  const attend = packedAttend(graph, visibleEnd);
  const hidden_BTC = buildTransformer(graph, spec, { embedded, positionIds, weights, lora, attend });
  const read_UC = Gather(Reshape(hidden_BTC, [-1, spec.hiddenSize]), positions, 0, { isDistinct: true });
  const logits_UV = buildHead(spec, read_UC, weights);
  const logprobs_UV = LogSoftmax(temperature === 1 ? logits_UV : Mul(logits_UV, 1 / temperature));
  const logprob = Gather(Reshape(logprobs_UV, [-1]), choices);
  // -sum over the vocabulary of p log p
  const entropy = Neg(ReduceSum(Mul(Exp(logprobs_UV), logprobs_UV), { axes: [1], keepDims: false }));
  return { weights, embedded, logprob, entropy };
}

/** What gradients are computed for, by name. */
function trainedTensors(model: AdaptedModel, forward: Forward): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const { name } of listTrained(model)) {
    if (name === EMBEDDING) tensors.set(INPUT.embedded, forward.embedded);
    // An untied table is reached through the embedded tokens only.
    if (model.spec.isTied || name !== EMBEDDING) tensors.set(name, forward.weights[name]!);
  }
  return tensors;
}

function sum(x: Tensor): Tensor {
  return ReduceSum(x, { keepDims: false });
}
