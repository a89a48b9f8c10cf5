/**
 * Packs samples as prefix trees into rows of bounded length.
 *
 * P1  Tokens of a row stand in depth-first order, so the tokens below a token are a run that starts at it. `visibleEnd`
 *     is the end of that run: token i sees token j exactly where j <= i < visibleEnd[j].
 * P2  A token's position is its depth in the tree: its distance from the start of its sample.
 * P3  Samples fill rows in the order of their prefix tree; one that does not fit opens the next row, which repeats
 *     the prefix. Rows depend on the samples and their order only.
 * P4  Every trained token is one entry: where its prediction is read, and what it is. Entries stand in order of
 *     (sample, token); several may read one position.
 */
import { BrokenRecordError } from "../errors.ts";
import type { MaskedTokens } from "../rollout.ts";
import { type OrderedSample, orderByPrefix, sharedPrefix } from "./prefix-tree.ts";

export interface PackOptions {
  /** Tokens of a row at most. A sample that is longer makes every row as long as itself. */
  readonly maxRowTokens: number;
  /** Tokens of a row at least, padding included; default 1. */
  readonly minRowTokens?: number;
}

/** Rows of tokens and the entries that are trained. B rows, T tokens of a row, E entries. */
export interface PackedBatch {
  readonly rowCount: number;
  readonly rowTokens: number;
  /** [B*T]; 0 for padding. */
  readonly tokenIds: Int32Array;
  /** [B*T] */
  readonly positionIds: Int32Array;
  /** [B*T] counted from the start of the row; a padding token j has j + 1. */
  readonly visibleEnd: Int32Array;
  /** [E] index into B*T of the token after which the entry is predicted. */
  readonly entryPosition: Int32Array;
  /** [E] the token that was sampled there. */
  readonly entryTarget: Int32Array;
  /** Tokens that separate sequences would have computed. */
  readonly sampleTokenCount: number;
  /** Tokens computed here, padding left out. */
  readonly packedTokenCount: number;
}

/** A row while it is filled. */
interface OpenRow {
  readonly tokenIds: number[];
  readonly positionIds: number[];
  readonly visibleEnd: number[];
  /** Row index of each token of the last sample. */
  readonly path: number[];
}

/**
 * @throws {BrokenRecordError} where a sample's mask does not fit its tokens, or nothing is trained.
 */
export function packSamples(samples: readonly MaskedTokens[], options: PackOptions): PackedBatch {
  samples.forEach(checkPackable);
  const ordered = orderByPrefix(samples);
  if (ordered.length === 0) {
    throw new BrokenRecordError(
      `none of the ${samples.length} samples to pack has a trained token; at least one must have one`,
    );
  }
  const longest = ordered.reduce((max, { computedLength }) => Math.max(max, computedLength), 0);
  const maxRowTokens = Math.max(options.maxRowTokens, longest);

  const rows: OpenRow[] = [];
  const places = new Map<number, { row: number; path: number[] }>();
  let row = openRow(rows);
  let previous: OrderedSample | undefined;
  for (const current of ordered) {
    let shared = sharedWith(samples, previous, current);
    if (row.tokenIds.length + current.computedLength - shared > maxRowTokens) {
      closePath(row, 0);
      row = openRow(rows);
      shared = 0;
    }
    closePath(row, shared); // P1
    const { tokenIds } = samples[current.sample]!;
    for (let depth = shared; depth < current.computedLength; depth++) {
      row.path.push(row.tokenIds.length);
      row.tokenIds.push(tokenIds[depth]!);
      row.positionIds.push(depth); // P2
    }
    places.set(current.sample, { row: rows.length - 1, path: [...row.path] });
    previous = current;
  }
  closePath(row, 0);
  return layOut(samples, rows, places, ordered, options.minRowTokens ?? 1);
}

function sharedWith(
  samples: readonly MaskedTokens[],
  previous: OrderedSample | undefined,
  current: OrderedSample,
): number {
  if (previous === undefined) return 0;
  const limit = Math.min(previous.computedLength, current.computedLength);
  return sharedPrefix(samples[previous.sample]!, samples[current.sample]!, limit);
}

function openRow(rows: OpenRow[]): OpenRow {
  const row: OpenRow = { tokenIds: [], positionIds: [], visibleEnd: [], path: [] };
  rows.push(row);
  return row;
}

/** Ends the run of every token of the open path from `depth` on. */
function closePath(row: OpenRow, depth: number): void {
  for (const at of row.path.splice(depth)) row.visibleEnd[at] = row.tokenIds.length;
}

function layOut(
  samples: readonly MaskedTokens[],
  rows: readonly OpenRow[],
  places: ReadonlyMap<number, { row: number; path: number[] }>,
  ordered: readonly OrderedSample[],
  minRowTokens: number,
): PackedBatch {
  const rowTokens = rows.reduce((max, row) => Math.max(max, row.tokenIds.length), minRowTokens);
  const tokenIds = new Int32Array(rows.length * rowTokens);
  const positionIds = new Int32Array(tokenIds.length);
  const visibleEnd = Int32Array.from(tokenIds, (_, at) => (at % rowTokens) + 1);
  rows.forEach((row, index) => {
    tokenIds.set(row.tokenIds, index * rowTokens);
    positionIds.set(row.positionIds, index * rowTokens);
    visibleEnd.set(row.visibleEnd, index * rowTokens);
  });
  const positions: number[] = [];
  const targets: number[] = [];
  samples.forEach((sample, index) => {
    const place = places.get(index);
    for (let i = 1; place !== undefined && i < sample.tokenIds.length; i++) {
      if (sample.lossMask[i] !== 1) continue;
      positions.push(place.row * rowTokens + place.path[i - 1]!); // P4
      targets.push(sample.tokenIds[i]!);
    }
  });
  return {
    rowCount: rows.length,
    rowTokens,
    tokenIds,
    positionIds,
    visibleEnd,
    entryPosition: Int32Array.from(positions),
    entryTarget: Int32Array.from(targets),
    sampleTokenCount: ordered.reduce((sum, { computedLength }) => sum + computedLength, 0),
    packedTokenCount: rows.reduce((sum, row) => sum + row.tokenIds.length, 0),
  };
}

function checkPackable(sample: MaskedTokens, index: number): void {
  if (sample.lossMask.length !== sample.tokenIds.length || sample.lossMask[0] === 1) {
    throw new BrokenRecordError(
      `sample ${index} has ${sample.tokenIds.length} tokens and a mask of ${sample.lossMask.length} entries that begins with ` +
        `${sample.lossMask[0]}; a mask has one entry for each token and begins with 0`,
    );
  }
}
