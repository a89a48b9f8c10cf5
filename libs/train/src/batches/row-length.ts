/**
 * How long the rows are that samples are packed into.
 *
 * Long rows hold more branches of a shared prefix, which is then computed once; but attention compares a token
 * with most others of its row, so it costs more in a long one. With B rows of T tokens, padding included, a pass costs
 *
 *   B T (perToken + perPair T)
 *
 * and the length is chosen for which that is least: for a group of 8 answers of 64 tokens to a prompt of 110, rows that
 * hold the whole group cost half of what separate samples do.
 */
import type { ModelSpec } from "@hone/nn";
import { type MaskedTokens, type PackedBatch, packSamples } from "@hone/rl";
import { usualRowPieces } from "../graph/training-memory.ts";

/** In multiply-adds, forwards; the way back costs twice as many of both. */
export interface RowCost {
  /** Of a token wherever it stands: the matrices of every layer. */
  readonly perToken: number;
  /** Of a token for each token of its row: scores and the mix of values, in every layer, but for those that the pieces leave out. */
  readonly perPair: number;
}

/** Between two lengths that are tried. */
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
 * Packs into the rows that cost least, the shorter ones of two that cost the same; a function of its arguments only.
 *
 * @param from shortest limit of a row's tokens that is tried
 * @param to longest one
 * @param minRowTokens tokens that rows have at least, padding included; default 1
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
  // Where one row holds everything, longer ones change nothing.
  for (let limit = from + STEP, rows = best.rowCount; limit <= to && rows > 1; limit += STEP) {
    const packed = packSamples(samples, { maxRowTokens: limit, minRowTokens });
    rows = packed.rowCount;
    if (costOf(packed) < costOf(best)) best = packed;
  }
  return best;
}
