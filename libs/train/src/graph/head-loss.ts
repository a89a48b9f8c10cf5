/**
 * The vocabulary head and the loss with their gradients, computed for one chunk of positions after the other.
 *
 * Letters: U positions whose prediction is read, E entries (trained tokens; several may read one position), C hidden
 * size, V vocabulary. For a single chunk, U and E count only its positions and entries.
 *
 * With a large vocabulary, the logits [U, V] need more memory than everything that the layers keep. The logits of a chunk are
 * freed after the chunk: its backward pass follows at once, and only the gradient with respect to its hidden states and the
 * sum of the head's gradients are kept. H1: the start of a chunk is computed from the size of the previous chunk's gradient,
 * so that the chunk cannot run before it.
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

/** How positions are divided: `count` chunks of `positions` each; the last ones may be shorter or empty. */
export interface HeadChunks {
  readonly count: number;
  readonly positions: number;
}

/** The objective of a training graph; equal objectives give equal graphs. */
export interface GraphObjective {
  /** Terms that are added up for every entry. */
  readonly terms: readonly LossTerm<LossName>[];
  /** The logits are divided by this, as when the tokens were sampled. */
  readonly temperature: number;
  readonly hasEntropyBonus: boolean;
}

/** The inputs and settings of the head. */
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
  /** [V, C]; undefined if the head is not trained. */
  readonly headGradient: Tensor | undefined;
}

/**
 * Number of logit values at a time: large enough that the products run at full speed and the head's gradient is a sum of
 * few parts. A tensor of this size takes 96 MiB.
 */
const CHUNK_VALUES = 24 * 2 ** 20;

/** The chunks for at most `maxPositions`. @param values number of logit values of a chunk */
export function headChunks(vocabSize: number, maxPositions: number, values = CHUNK_VALUES): HeadChunks {
  const positions = Math.max(1, Math.floor(values / vocabSize));
  return { count: Math.max(1, Math.ceil(maxPositions / positions)), positions };
}

/** Symbolic size for the number of a chunk's positions. */
export function chunkPositions(chunk: number): string {
  return `positions${chunk}`;
}

/** Computes log-probabilities of the entries and entropies of the positions. */
export function buildHeadScores(graph: Graph, spec: ModelSpec, inputs: HeadInputs): HeadScores {
  const found = forEachChunk(graph, inputs, (read, index) => {
    const { logprob, entropy } = scoreChunk(graph, spec, inputs, read, index);
    return { end: entropy, logprob, entropy };
  });
  return { logprob: join(found.map((f) => f.logprob)), entropy: join(found.map((f) => f.entropy)) };
}

/** Also computes the loss of an objective and its gradients. @param isHeadTrained whether the head's gradient is computed */
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

/** @param use computes the results for a chunk's hidden states; the next chunk waits for the result `end` [U, ...]. */
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
