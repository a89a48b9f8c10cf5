/**
 * The passes over a large vocabulary that a draw needs, in the graph: with them the draw itself reads one block of a
 * row (see Sampler of the inference gateway).
 *
 * Letters: W rows, V vocabulary, B blocks of V/B consecutive tokens.
 *
 *   scaled = logits / temperature      largest = max scaled      mass of a block = sum of exp(scaled - largest) in it
 */
import { Exp, type Graph, Mul, ReduceMax, ReduceSum, Reshape, Sub, type Tensor } from "@hone/tensor";

/** Smaller vocabularies are drawn from directly: that costs less than the extra nodes, and keeps float64 throughout. */
const MIN_VOCABULARY = 4_096;
/** A draw scans the blocks and then one block, so neither may be long. */
const MAX_BLOCKS = 8_192;

/** How many blocks a vocabulary is cut into: the divisor nearest its root. 0 where draws scan the row. */
export function massBlocks(vocabSize: number): number {
  if (vocabSize < MIN_VOCABULARY) return 0;
  let blocks = Math.ceil(Math.sqrt(vocabSize));
  while (blocks < MAX_BLOCKS && vocabSize % blocks !== 0) blocks++;
  return vocabSize % blocks === 0 ? blocks : 0;
}

/**
 * Adds the input inverseTemperatures [1, W, 1], float32, and the outputs largest [1, W, 1] and blockMasses [1, W, B].
 * @param logits [1, W, V]
 */
export function outputMasses(graph: Graph, logits: Tensor, vocabSize: number): void {
  const blocks = massBlocks(vocabSize);
  if (blocks === 0) return;
  const scaled = Mul(logits, graph.input("inverseTemperatures", "float32", [1, "wanted", 1]));
  const largest = ReduceMax(scaled, { axes: [2] });
  const masses = Reshape(Exp(Sub(scaled, largest)), [1, "wanted", blocks, vocabSize / blocks]);
  graph.output("largest", largest);
  graph.output("blockMasses", ReduceSum(masses, { axes: [3], keepDims: false }));
}
