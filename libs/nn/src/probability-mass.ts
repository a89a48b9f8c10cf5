/**
 * Computes in the graph what sampling needs from a pass over a large vocabulary. Sampling itself then reads only one block of
 * a row (see Sampler of the inference gateway), and the other blocks need not become outputs, which onnxruntime copies.
 *
 * Letters: W rows, V vocabulary, B blocks of V/B consecutive tokens, u uniform numbers.
 *
 *   scaled = logits / temperature      largest = max scaled      mass of a block = sum of exp(scaled - largest) in it
 *   drawn block = the first block for which the sum of the masses up to and including it exceeds u times the total mass
 */
import {
  Add,
  Cast,
  CumSum,
  Exp,
  Gather,
  type Graph,
  LessOrEqual,
  Min,
  Mul,
  RangeAlong,
  ReduceMax,
  ReduceSum,
  Reshape,
  Sub,
  type Tensor,
} from "@hone/tensor";

/** Sampling reads smaller vocabularies directly. That costs less than the extra nodes and uses float64 throughout. */
const MIN_VOCABULARY = 4_096;
/** A draw scans the list of blocks and then one block, so both must be short. */
const MAX_BLOCKS = 8_192;
/** The largest float32 below 1. Its rounded product with a sum is less than the sum. */
export const LARGEST_UNIFORM = 1 - 2 ** -24;

/** Number of blocks of a vocabulary: its smallest divisor from the square root upwards. 0 = draws scan the whole row. */
export function massBlocks(vocabSize: number): number {
  if (vocabSize < MIN_VOCABULARY) return 0;
  let blocks = Math.ceil(Math.sqrt(vocabSize));
  while (blocks < MAX_BLOCKS && vocabSize % blocks !== 0) blocks++;
  return vocabSize % blocks === 0 ? blocks : 0;
}

/**
 * Adds the float32 inputs inverseTemperatures and uniforms [1, W, 1], where uniforms are at most {@link LARGEST_UNIFORM}, and
 * the outputs largest [1, W, 1], blockMasses [1, W, B], drawnBlocks [W] (int64), and drawnLogits [W, V/B], which are the
 * logits of the drawn block.
 * @param logits [1, W, V]
 */
export function outputMasses(graph: Graph, logits: Tensor, vocabSize: number): void {
  const blocks = massBlocks(vocabSize);
  if (blocks === 0) return;
  const blockSize = vocabSize / blocks;
  const perRow = (name: string) => graph.input(name, "float32", [1, "wanted", 1]);
  const scaled = Mul(logits, perRow("inverseTemperatures"));
  const largest = ReduceMax(scaled, { axes: [2] });
  const weights = Reshape(Exp(Sub(scaled, largest)), [1, "wanted", blocks, blockSize]);
  const masses = ReduceSum(weights, { axes: [3], keepDims: false });
  graph.output("largest", largest);
  graph.output("blockMasses", masses);
  const upTo = CumSum(masses, 2);
  const target = Mul(ReduceMax(upTo, { axes: [2] }), perRow("uniforms"));
  const isBefore = Cast(LessOrEqual(upTo, target), "float32");
  const count = Cast(ReduceSum(isBefore, { axes: [0, 2], keepDims: false }), "int64");
  // A row that contains NaN has no such block. The sampler rejects it.
  const drawn = Min(count, graph.scalar("int64", blocks - 1));
  const row = RangeAlong(logits, 1);
  graph.output("drawnBlocks", drawn);
  graph.output(
    "drawnLogits",
    Gather(Reshape(logits, [-1, blockSize]), Add(Mul(row, graph.scalar("int64", blocks)), drawn)),
  );
}
