/**
 * The vocabulary head and the loss with their gradients, computed for one chunk of positions after the other.
 *
 * Letters: U positions whose prediction is read, E entries (trained tokens; several may read one position), C hidden
 * size, V vocabulary. For a single chunk, U and E count only its positions and entries.
 *
 * With a large vocabulary, the logits [U, V] need more memory than everything that the layers keep. The logits of a chunk are
 * freed after the chunk: its backward pass follows at once, and only the gradient with respect to its hidden states and the
 * sum of the head's gradients are kept. H1: the start of a chunk is computed from the size of the previous chunk's gradient,
 * so that the chunk cannot run before it. Where the loss takes entries of several chunks together, the log-probabilities of
 * all chunks are computed first, and the logits of each chunk a second time.
 */
import { buildHead, headParameter, type Linear, type ModelSpec, type WeightTensors } from "@hone/nn";
import { type LossName, type LossTerm, takesTogether } from "@hone/rl";
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
  SplitLike,
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
  /** How logits are computed. @default in float32, with the weights */
  readonly linear?: Linear | undefined;
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

/** The scores of a forward pass. */
export interface ForwardScores extends HeadScores {
  /** [U] sum over the vocabulary of p^2; undefined if it is not asked for. */
  readonly squares: Tensor | undefined;
}

/** Computes log-probabilities of the entries, entropies of the positions, and where asked their sums of squared probabilities. */
export function buildHeadScores(
  graph: Graph,
  spec: ModelSpec,
  inputs: HeadInputs,
  hasSquares: boolean,
): ForwardScores {
  const found = forEachChunk(graph, inputs, (read, index) => {
    const { logprob, entropy, probabilities } = scoreChunk(spec, inputs, read, choicesOf(graph, index));
    const squares = hasSquares
      ? ReduceSum(Mul(probabilities, probabilities), { axes: [1], keepDims: false })
      : undefined;
    return { end: entropy, logprob, entropy, squares };
  });
  const squares = found.flatMap((f) => f.squares ?? []);
  return { ...joinScores(found), squares: squares.length === 0 ? undefined : join(squares) };
}

/** Also computes the loss of an objective and its gradients. @param isHeadTrained whether the head's gradient is computed */
export function buildHeadLoss(
  graph: Graph,
  spec: ModelSpec,
  inputs: HeadInputs,
  objective: GraphObjective,
  isHeadTrained: boolean,
): HeadGradients {
  if (inputs.chunks.count > 1 && takesTogether(objective.terms)) {
    return buildJointHeadLoss(graph, spec, inputs, objective, isHeadTrained);
  }
  const back = headBackward(spec, inputs, objective, isHeadTrained);
  const found = forEachChunk(graph, inputs, (read, index) => {
    const scores = scoreChunk(spec, inputs, read, choicesOf(graph, index));
    const { loss, ofScores } = differentiateScores(graph, scores, objective, (name, score) =>
      graph.input(chunkInput(name, index), "float32", scores[score].shape),
    );
    const readGradient = back.chunk(read, scores, ofScores);
    return { end: readGradient, logprob: scores.logprob, entropy: scores.entropy, loss, readGradient };
  });
  return {
    ...joinScores(found),
    loss: found.map((f) => f.loss).reduce((sum, loss) => Add(sum, loss)),
    readGradient: join(found.map((f) => f.readGradient)),
    headGradient: back.headGradient(),
  };
}

/** The same with the loss of all chunks together. */
function buildJointHeadLoss(
  graph: Graph,
  spec: ModelSpec,
  inputs: HeadInputs,
  objective: GraphObjective,
  isHeadTrained: boolean,
): HeadGradients {
  const forward = forEachChunk(graph, inputs, (read, index) => {
    const choices = choicesOf(graph, index);
    const { logprob, entropy } = scoreChunk(spec, inputs, read, choices);
    return { end: entropy, choices, logprob, entropy };
  });
  const scores = joinScores(forward);
  const { loss, ofScores } = differentiateScores(graph, scores, objective, (name, score) =>
    join(forward.map((f, index) => graph.input(chunkInput(name, index), "float32", f[score].shape))),
  );
  const ofEach = (x: Tensor, score: keyof HeadScores) =>
    SplitLike(
      x,
      forward.map((f) => f[score]),
      0,
    );
  const ofLogprob = ofEach(ofScores.logprob, "logprob");
  const ofEntropy = ofScores.entropy && ofEach(ofScores.entropy, "entropy");
  const back = headBackward(spec, inputs, objective, isHeadTrained);
  const again = (read: Tensor, index: number) => {
    const chunk = scoreChunk(spec, inputs, read, forward[index]!.choices);
    const readGradient = back.chunk(read, chunk, {
      logprob: ofLogprob[index]!,
      entropy: ofEntropy?.[index],
    });
    return { end: readGradient, readGradient };
  };
  const found = forEachChunk(graph, inputs, again, ofScores.logprob);
  return {
    ...scores,
    loss,
    readGradient: join(found.map((f) => f.readGradient)),
    headGradient: back.headGradient(),
  };
}

/** From the gradients of scores to those of hidden states, chunk by chunk, and to the sum of the head's. */
function headBackward(
  spec: ModelSpec,
  { weights }: HeadInputs,
  { temperature }: GraphObjective,
  isHeadTrained: boolean,
) {
  const alpha = 1 / temperature;
  let headGradient: Tensor | undefined;
  return {
    chunk(read: Tensor, scores: ChunkScores, ofScores: ScoreGradients): Tensor {
      const logitGradient = logitGradientOf(scores, ofScores);
      const readGradient = FusedMatMul(logitGradient, weights[headParameter(spec)]!, { alpha });
      if (isHeadTrained) {
        headGradient =
          headGradient === undefined
            ? FusedMatMul(logitGradient, read, { transA: true, alpha })
            : Gemm(logitGradient, read, headGradient, { transA: true, alpha });
      }
      return readGradient;
    },
    headGradient: () => headGradient,
  };
}

/**
 * @param use computes the results for a chunk's hidden states; the next chunk waits for the result `end` [U, ...].
 * @param before [E] what the first chunk waits for; absent = it waits for nothing.
 */
function forEachChunk<T extends { readonly end: Tensor }>(
  graph: Graph,
  { read, chunks }: HeadInputs,
  use: (read: Tensor, index: number) => T,
  before?: Tensor,
): T[] {
  if (chunks.count === 1) return [use(read, 0)];
  const results: T[] = [];
  let start = before === undefined ? graph.constant("int64", [0]) : Mul(Shape(before, 0, 1), 0);
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

function choicesOf(graph: Graph, index: number): Tensor {
  return graph.input(chunkInput(INPUT.choices, index), "int32", [`entries${index}`]);
}

function scoreChunk(
  spec: ModelSpec,
  { weights, linear, temperature }: HeadInputs,
  read: Tensor,
  choices: Tensor,
): ChunkScores {
  const logits = buildHead(spec, read, weights, linear);
  const logprobs = LogSoftmax(temperature === 1 ? logits : Mul(logits, 1 / temperature));
  const probabilities = Exp(logprobs);
  const logprob = Gather(Reshape(logprobs, [-1]), choices);
  const entropy = Neg(ReduceSum(Mul(probabilities, logprobs), { axes: [1], keepDims: false }));
  return { choices, logprobs, probabilities, logprob, entropy };
}

/** Gradients of the loss with respect to scores. */
interface ScoreGradients {
  /** [E] */
  readonly logprob: Tensor;
  /** [U]; undefined if the loss does not depend on entropies. */
  readonly entropy: Tensor | undefined;
}

/**
 *   loss = sum over entries of weight * (sum of the terms of the entry)
 *          - sum over positions of entropyWeight * entropy
 *
 * @param input a number of each entry or each position, which are those of a score
 */
function differentiateScores(
  graph: Graph,
  { logprob, entropy }: HeadScores,
  { terms, hasEntropyBonus }: GraphObjective,
  input: (name: string, score: keyof HeadScores) => Tensor,
): { readonly loss: Tensor; readonly ofScores: ScoreGradients } {
  const perEntry = (name: string) => input(name, "logprob");
  let total = sum(Mul(buildTerms(terms, logprob, perEntry), perEntry(INPUT.weight)));
  if (hasEntropyBonus) total = Sub(total, sum(Mul(entropy, input(INPUT.entropyWeight, "entropy"))));
  const [g, c] = gradients(graph, total, hasEntropyBonus ? [logprob, entropy] : [logprob]);
  return { loss: total, ofScores: { logprob: g!, entropy: c } };
}

/**
 * With g = d loss / d logprob[e], c = d loss / d entropy[u], s[u] the sum of g over the entries of u, p and H the
 * position's probabilities and entropy, and z the logits divided by the temperature:
 *
 *   d loss / d z[u, v] = sum over entries (u, v) of g  -  p (s + c (log p + H))
 */
function logitGradientOf(
  { choices, logprobs, probabilities, entropy }: ChunkScores,
  { logprob: g, entropy: c }: ScoreGradients,
): Tensor {
  const vocabSize = Number(logprobs.shape[1]);
  const s = ScatterElements(ZerosLike(entropy), Div(choices, vocabSize), g, 0, "add");
  const perPosition = (x: Tensor) => Unsqueeze(x, [1]);
  const factor =
    c === undefined
      ? perPosition(Neg(s))
      : Sub(perPosition(Neg(Add(s, Mul(c, entropy)))), Mul(logprobs, perPosition(c)));
  const spread = Reshape(Mul(probabilities, factor), [-1]);
  return Reshape(ScatterElements(spread, choices, g, 0, "add"), [-1, vocabSize]);
}

function joinScores(chunks: readonly HeadScores[]): HeadScores {
  return { logprob: join(chunks.map((f) => f.logprob)), entropy: join(chunks.map((f) => f.entropy)) };
}

function join(parts: readonly Tensor[]): Tensor {
  return Concat(parts, 0);
}

function sum(x: Tensor): Tensor {
  return ReduceSum(x, { keepDims: false });
}
