/**
 * Chooses the length of the rows into which samples are packed.
 *
 * Long rows hold more branches of a shared prefix, which is then computed only once. But attention compares a token with most
 * others of its row, so it costs more in long rows. With B rows of T tokens, including padding, a pass costs
 *
 *   B T (perToken + perPair T)
 *
 * and the length with the lowest cost is chosen. For a group of 8 answers of 64 tokens to a prompt of 110 tokens, rows that
 * hold the whole group cost half as much as separate samples.
 */
import type { ModelSpec } from "@hone/nn";
import { type MaskedTokens, type PackedBatch, packSamples } from "@hone/rl";
import { usualRowPieces } from "../graph/training-memory.ts";

/** Costs in multiply-adds of the forward pass; in the backward pass, both are twice as high. */
export interface RowCost {
  /** The cost of a token independent of its row: the matrices of every layer. */
  readonly perToken: number;
  /**
   * The cost of a token for each token of its row: scores and weighted sums of values in every layer, without the pairs that
   * the division into pieces leaves out.
   */
  readonly perPair: number;
}

/** Difference between two lengths that are tried. */
const STEP = 128;

export function rowCostOf(spec: ModelSpec): RowCost {
  const { hiddenSize, headDim, numHeads, numKeyValueHeads, intermediateSize, numLayers } = spec;
  const pieces = usualRowPieces(spec);
  const attention = 2 * hiddenSize * headDim * (numHeads + numKeyValueHeads);
  return {
    perToken: numLayers * (attention + 3 * hiddenSize * intermediateSize),
    perPair: (numLayers * 2 * numHeads * headDim * (pieces + 1)) / (2 * pieces),
  };
}

/**
 * Packs samples into the rows with the lowest cost; if two lengths cost the same, the shorter one is chosen. The result
 * depends only on the arguments.
 *
 * @param from smallest limit for a row's tokens that is tried
 * @param to largest limit
 * @param minRowTokens fewest tokens of a row, including padding; default 1
 */
export function packCheapest(
  samples: readonly MaskedTokens[],
  {
    from,
    to,
    minRowTokens = 1,
  }: { readonly from: number; readonly to: number; readonly minRowTokens?: number },
  { perToken, perPair }: RowCost,
): PackedBatch {
  let best = packSamples(samples, { maxRowTokens: from, minRowTokens });
  const costOf = ({ rowCount, rowTokens }: PackedBatch) =>
    rowCount * rowTokens * (perToken + perPair * rowTokens);
  // Once one row holds everything, a larger limit changes nothing.
  for (let limit = from + STEP, rows = best.rowCount; limit <= to && rows > 1; limit += STEP) {
    const packed = packSamples(samples, { maxRowTokens: limit, minRowTokens });
    rows = packed.rowCount;
    if (costOf(packed) < costOf(best)) best = packed;
  }
  return best;
}
