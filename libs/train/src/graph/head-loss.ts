/**
 * The vocabulary head with its loss and their gradients, on one chunk of positions after the other.
 *
 * Letters: U positions whose prediction is read, E entries (trained tokens; several may read one position), C hidden
 * size, V vocabulary; each of a chunk, where a chunk is meant.
 *
 * With a large vocabulary the logits [U, V] outweigh all that the layers keep. A chunk's logits end with the chunk: its
 * backward pass comes at once, and only the gradient in the hidden states that it read and the sum of the head's
 * gradients go on. H1: a chunk is cut out where the last one's gradient ended, so that it cannot begin before.
 */
import { buildHead, headParameter, type ModelSpec, type WeightTensors } from "@hone/nn";
import type { LossName, LossTerm } from "@hone/rl";
import {
  Add,
  Concat,
  Div,
  Exp,
  FusedMatMul,
  Gather,
  Gemm,
  type Graph,
  gradients,
  LogSoftmax,
  Mul,
  Neg,
  ReduceSum,
  Reshape,
  ScatterElements,
  Shape,
  SliceFrom,
  Sub,
  type Tensor,
  Unsqueeze,
  ZerosLike,
} from "@hone/tensor";
import { buildTerms } from "../losses/registry.ts";
import { chunkInput, INPUT } from "./training-names.ts";

/** How positions are cut: `count` chunks of `positions` each, of which the last ones may be shorter or empty. */
export interface HeadChunks {
  readonly count: number;
  readonly positions: number;
}

/** What a training graph computes; graphs of equal objectives are the same. */
export interface GraphObjective {
  /** Added up for every entry. */
  readonly terms: readonly LossTerm<LossName>[];
  /** Logits are divided by it, as they were when the tokens were sampled. */
  readonly temperature: number;
  readonly hasEntropyBonus: boolean;
}

/** The head as it is applied. */
export interface HeadInputs {
  readonly weights: WeightTensors;
  /** [U, C] hidden states. */
  readonly read: Tensor;
  readonly temperature: number;
  readonly chunks: HeadChunks;
}

export interface HeadScores {
  /** [E] */
  readonly logprob: Tensor;
  /** [U] */
  readonly entropy: Tensor;
}

export interface HeadGradients extends HeadScores {
  /** [] */
  readonly loss: Tensor;
  /** [U, C] */
  readonly readGradient: Tensor;
  /** [V, C]; undefined where it was not asked for. */
  readonly headGradient: Tensor | undefined;
}

/**
 * Values of the logits at a time: large enough that the products run at their full rate and the sums of the head's
 * gradient are few, and 96 MiB a tensor.
 */
const CHUNK_VALUES = 24 * 2 ** 20;

/** The chunks for at most `maxPositions`. @param values of the logits of a chunk */
export function headChunks(vocabSize: number, maxPositions: number, values = CHUNK_VALUES): HeadChunks {
  const positions = Math.max(1, Math.floor(values / vocabSize));
  return { count: Math.max(1, Math.ceil(maxPositions / positions)), positions };
}

/** Name of the number of a chunk's positions. */
export function chunkPositions(chunk: number): string {
  return `positions${chunk}`;
}

/** Log-probabilities of the entries and entropies of the positions. */
export function buildHeadScores(graph: Graph, spec: ModelSpec, inputs: HeadInputs): HeadScores {
  const found = forEachChunk(graph, inputs, (read, index) => {
    const { logprob, entropy } = scoreChunk(graph, spec, inputs, read, index);
    return { end: entropy, logprob, entropy };
  });
  return { logprob: join(found.map((f) => f.logprob)), entropy: join(found.map((f) => f.entropy)) };
}

/** The same with the loss of an objective and its gradients. @param isHeadTrained whether the head's is wanted */
export function buildHeadLoss(
  graph: Graph,
  spec: ModelSpec,
  inputs: HeadInputs,
  objective: GraphObjective,
  isHeadTrained: boolean,
): HeadGradients {
  let headGradient: Tensor | undefined;
  const found = forEachChunk(graph, inputs, (read, index) => {
    const scores = scoreChunk(graph, spec, inputs, read, index);
    const { loss, logitGradient } = differentiateChunk(graph, scores, objective, index);
    const alpha = 1 / objective.temperature;
    const readGradient = FusedMatMul(logitGradient, inputs.weights[headParameter(spec)]!, { alpha });
    if (isHeadTrained) {
      headGradient =
        headGradient === undefined
          ? FusedMatMul(logitGradient, read, { transA: true, alpha })
          : Gemm(logitGradient, read, headGradient, { transA: true, alpha });
    }
    return { end: readGradient, logprob: scores.logprob, entropy: scores.entropy, loss, readGradient };
  });
  return {
    logprob: join(found.map((f) => f.logprob)),
    entropy: join(found.map((f) => f.entropy)),
    loss: found.map((f) => f.loss).reduce((sum, loss) => Add(sum, loss)),
    readGradient: join(found.map((f) => f.readGradient)),
    headGradient,
  };
}

/** @param use makes what it wants of the chunk's hidden states; `end` [U, ...] is what the next chunk waits for. */
function forEachChunk<T extends { readonly end: Tensor }>(
  graph: Graph,
  { read, chunks }: HeadInputs,
  use: (read: Tensor, index: number) => T,
): T[] {
  if (chunks.count === 1) return [use(read, 0)];
  const results: T[] = [];
  let start = graph.constant("int64", [0]);
  for (let index = 0; index < chunks.count; index++) {
    const result = use(SliceFrom(read, 0, start, chunks.positions, chunkPositions(index)), index);
    results.push(result);
    start = Add(start, Shape(result.end, 0, 1)); // H1
  }
  return results;
}

interface ChunkScores extends HeadScores {
  /** int32 [E] position times V plus token. */
  readonly choices: Tensor;
  /** [U, V] */
  readonly logprobs: Tensor;
  /** [U, V] */
  readonly probabilities: Tensor;
}

function scoreChunk(
  graph: Graph,
  spec: ModelSpec,
  { weights, temperature }: HeadInputs,
  read: Tensor,
  index: number,
): ChunkScores {
  const choices = graph.input(chunkInput(INPUT.choices, index), "int32", [`entries${index}`]);
  const logits = buildHead(spec, read, weights);
  const logprobs = LogSoftmax(temperature === 1 ? logits : Mul(logits, 1 / temperature));
  const probabilities = Exp(logprobs);
  const logprob = Gather(Reshape(logprobs, [-1]), choices);
  const entropy = Neg(ReduceSum(Mul(probabilities, logprobs), { axes: [1], keepDims: false }));
  return { choices, logprobs, probabilities, logprob, entropy };
}

/**
 *   loss = sum over entries of weight * (sum of the terms of the entry)
 *          - sum over positions of entropyWeight * entropy
 *
 * With g = d loss / d logprob[e], c = d loss / d entropy[u], s[u] the sum of g over the entries of u, p and H the
 * position's probabilities and entropy, and z the logits divided by the temperature:
 *
 *   d loss / d z[u, v] = sum over entries (u, v) of g  -  p (s + c (log p + H))
 */
function differentiateChunk(
  graph: Graph,
  { choices, logprobs, probabilities, logprob, entropy }: ChunkScores,
  { terms, hasEntropyBonus }: GraphObjective,
  index: number,
): { readonly loss: Tensor; readonly logitGradient: Tensor } {
  const perEntry = (name: string) => graph.input(chunkInput(name, index), "float32", logprob.shape);
  let total = sum(Mul(buildTerms(terms, logprob, perEntry), perEntry(INPUT.weight)));
  if (hasEntropyBonus) {
    const weight = graph.input(chunkInput(INPUT.entropyWeight, index), "float32", entropy.shape);
    total = Sub(total, sum(Mul(entropy, weight)));
  }
  const [g, c] = gradients(graph, total, hasEntropyBonus ? [logprob, entropy] : [logprob]);
  const vocabSize = Number(logprobs.shape[1]);
  const s = ScatterElements(ZerosLike(entropy), Div(choices, vocabSize), g!, 0, "add");
  const perPosition = (x: Tensor) => Unsqueeze(x, [1]);
  const factor =
    c === undefined
      ? perPosition(Neg(s))
      : Sub(perPosition(Neg(Add(s, Mul(c, entropy)))), Mul(logprobs, perPosition(c)));
  const spread = Reshape(Mul(probabilities, factor), [-1]);
  const logitGradient = Reshape(ScatterElements(spread, choices, g!, 0, "add"), [-1, vocabSize]);
  return { loss: total, logitGradient };
}

function join(parts: readonly Tensor[]): Tensor {
  return Concat(parts, 0);
}

function sum(x: Tensor): Tensor {
  return ReduceSum(x, { keepDims: false });
}
