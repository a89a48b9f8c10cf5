/**
 * Converts samples to the inputs of the training graph: packed rows, in microbatches of a limited number of tokens.
 *
 * Letters as in training-graph.ts.
 */
import { headWidth, type ModelSpec } from "@hone/nn";
import { type MaskedTokens, type PackedBatch, packSamples, type TokenInput } from "@hone/rl";
import type { Feed } from "@hone/tensor";
import { TrainingInputError } from "../errors.ts";
import type { HeadChunks } from "../graph/head-loss.ts";
import { chunkInput, INPUT } from "../graph/training-names.ts";
import { packCheapest, type RowCost } from "./row-length.ts";

/** A sample to train on, with the values for its N trained tokens in order. */
export interface TrainingSample extends MaskedTokens {
  /** The inputs of the loss by name, each [N]. */
  readonly inputs?: Readonly<Partial<Record<TokenInput, ArrayLike<number>>>>;
  /** [N] factor of each token's loss; it determines how the losses are averaged. */
  readonly weights: ArrayLike<number>;
}

/** Limits of a forward-backward pass. */
export interface PackingLimits {
  /** Most tokens of a row: long rows share more prefixes, short rows make attention cheaper. */
  readonly maxRowTokens: number;
  /** If given, rows may become as long as a microbatch if that makes the computation cheaper (row-length.ts). */
  readonly rowCost?: RowCost;
  /** Fewest tokens of a row, including padding; default 1. */
  readonly minRowTokens?: number;
  /** Most tokens of a microbatch, including padding; a microbatch has at least one row. */
  readonly maxMicrobatchTokens: number;
  /** The number of microbatches is a multiple of this if there are enough rows; default 1. */
  readonly microbatchMultiple?: number;
}

/**
 * The number of microbatches of a small model is a multiple of this, so that several threads share them more evenly. A
 * large model has as few microbatches as possible, because each returns a copy of all gradients. The number depends on the
 * model and not on the threads: the order of the sums, and so the bits of the result, must not depend on the machine.
 */
export const SMALL_MODEL_MICROBATCHES = 2;

/** The rows of one pass and their entries. */
export interface Microbatch {
  readonly rowCount: number;
  readonly rowTokens: number;
  /** [B*T] */
  readonly tokenIds: Int32Array;
  /** [B*T] */
  readonly positionIds: Int32Array;
  /** [B*T] */
  readonly visibleEnd: Int32Array;
  /** [U] */
  readonly positions: Int32Array;
  /** [E] index into `positions`, in non-decreasing order. */
  readonly entryPosition: Int32Array;
  /** [E] token */
  readonly entryTarget: Int32Array;
  /** [E] index of the entry among the trained tokens of all samples. */
  readonly entryIndex: Int32Array;
}

/** The microbatches of a set of samples. */
export interface MicrobatchPlan {
  readonly microbatches: readonly Microbatch[];
  readonly packed: PackedBatch;
}

/** Packs the samples and divides the rows into microbatches. The result depends only on the samples and the limits. */
export function planMicrobatches(samples: readonly MaskedTokens[], limits: PackingLimits): MicrobatchPlan {
  const { maxRowTokens, maxMicrobatchTokens, rowCost, minRowTokens = 1 } = limits;
  const packed =
    rowCost === undefined
      ? packSamples(samples, { maxRowTokens, minRowTokens })
      : packCheapest(samples, { from: maxRowTokens, to: maxMicrobatchTokens, minRowTokens }, rowCost);
  const rowsAtMost = Math.max(1, Math.floor(maxMicrobatchTokens / packed.rowTokens));
  const needed = Math.ceil(packed.rowCount / rowsAtMost);
  const multiple = limits.microbatchMultiple ?? 1;
  const count = Math.min(packed.rowCount, Math.ceil(needed / multiple) * multiple);
  const entriesOf: number[][] = Array.from({ length: count }, () => []);
  // Rows are distributed evenly: part i has the rows from floor(i * rows / count) up to the first row of the next part.
  const firstRow = Array.from({ length: count + 1 }, (_, i) => Math.floor((i * packed.rowCount) / count));
  const partOfRow = new Int32Array(packed.rowCount);
  for (let part = 0; part < count; part++) partOfRow.fill(part, firstRow[part]!, firstRow[part + 1]!);
  packed.entryPosition.forEach((position, entry) => {
    entriesOf[partOfRow[Math.floor(position / packed.rowTokens)]!]!.push(entry);
  });
  const microbatches = entriesOf.map((entries, part) =>
    cutMicrobatch(packed, entries, firstRow[part]!, firstRow[part + 1]!),
  );
  return { microbatches, packed };
}

/** The inputs that depend only on the tokens. */
export function microbatchFeeds(
  batch: Microbatch,
  embedding: Float32Array,
  spec: ModelSpec,
  { chunks, rowPieces }: { readonly chunks: HeadChunks; readonly rowPieces: number },
): Record<string, Feed> {
  const { rowCount, rowTokens, positions } = batch;
  const width = spec.hiddenSize;
  const embedded = new Float32Array(rowCount * rowTokens * width);
  batch.tokenIds.forEach((id, at) => {
    embedded.set(embedding.subarray(id * width, (id + 1) * width), at * width);
  });
  const numbers = headWidth(spec);
  // A value head gives each position one number, which all of its entries choose.
  const choices = batch.entryPosition.map(
    (position, entry) => (position % chunks.positions) * numbers + (batch.entryTarget[entry]! % numbers),
  );
  const shape = [rowCount, rowTokens];
  return {
    [INPUT.embedded]: { dtype: "float32", data: embedded, shape: [...shape, width] },
    [INPUT.positionIds]: { dtype: "int32", data: batch.positionIds, shape },
    ...pieceFeeds(batch, rowPieces),
    [INPUT.positions]: { dtype: "int32", data: positions, shape: [positions.length] },
    ...chunkFeeds(INPUT.choices, "int32", choices, entryEnds(batch, chunks)),
  };
}

/** The ends of the tokens' subtrees, as one input for each piece of the rows. */
function pieceFeeds({ visibleEnd, rowCount, rowTokens }: Microbatch, pieces: number): Record<string, Feed> {
  const bounds = Array.from({ length: pieces + 1 }, (_, piece) => Math.floor((piece * rowTokens) / pieces));
  return Object.fromEntries(
    bounds.slice(1).map((end, piece): [string, Feed] => {
      const begin = bounds[piece]!;
      const shape = [rowCount, end - begin];
      const data = new Int32Array(rowCount * (end - begin));
      for (let row = 0; row < rowCount; row++) {
        const part = visibleEnd.subarray(row * rowTokens + begin, row * rowTokens + end);
        data.set(part, row * (end - begin));
      }
      return [chunkInput(INPUT.visibleEnd, piece), { dtype: "int32", data, shape }];
    }),
  );
}

/**
 * Splits values into one input for each chunk of the head.
 *
 * @param ends where each chunk ends among the values.
 */
export function chunkFeeds(
  name: string,
  dtype: "int32" | "float32",
  values: Int32Array | Float32Array,
  ends: readonly number[],
): Record<string, Feed> {
  return Object.fromEntries(
    ends.map((end, chunk) => {
      const data = values.subarray(ends[chunk - 1] ?? 0, end);
      return [chunkInput(name, chunk), { dtype, data, shape: [data.length] }];
    }),
  );
}

/** Where the entries of each chunk end; entries are in the order of the positions that they read. */
export function entryEnds({ entryPosition }: Microbatch, { count, positions }: HeadChunks): number[] {
  const ends = new Array<number>(count).fill(0);
  for (const position of entryPosition) ends[Math.floor(position / positions)]!++;
  for (let chunk = 1; chunk < count; chunk++) ends[chunk]! += ends[chunk - 1]!;
  return ends;
}

/** Where the positions of each chunk end. */
export function positionEnds(batch: Microbatch, { count, positions }: HeadChunks): number[] {
  return Array.from({ length: count }, (_, chunk) =>
    Math.min(batch.positions.length, (chunk + 1) * positions),
  );
}

/**
 * One number for every trained token of all samples, in the order of (sample, token).
 *
 * @throws TrainingInputError if a sample does not have one finite number per trained token.
 */
export function flattenEntries(
  samples: readonly TrainingSample[],
  name: string,
  numbersOf: (sample: TrainingSample) => ArrayLike<number> | undefined,
): Float32Array {
  const flat: number[] = [];
  samples.forEach((sample, index) => {
    const values = numbersOf(sample) ?? [];
    let trained = 0;
    for (let i = 0; i < sample.lossMask.length; i++) trained += sample.lossMask[i]!;
    const areFinite = Array.prototype.every.call(values, Number.isFinite);
    if (values.length !== trained || !areFinite) {
      const found = areFinite ? `has ${values.length} ${name}` : `has ${name} that are not finite`;
      throw new TrainingInputError(
        `sample ${index} ${found}; it needs ${trained} finite numbers, one per trained token`,
      );
    }
    for (let i = 0; i < values.length; i++) flat.push(values[i]!);
  });
  return Float32Array.from(flat);
}

function cutMicrobatch(
  packed: PackedBatch,
  unordered: readonly number[],
  from: number,
  to: number,
): Microbatch {
  const { rowTokens } = packed;
  const first = from * rowTokens;
  const end = to * rowTokens;
  const entries = [...unordered].sort((a, b) => packed.entryPosition[a]! - packed.entryPosition[b]! || a - b);
  const positions: number[] = [];
  const entryPosition = Int32Array.from(entries, (entry) => {
    const position = packed.entryPosition[entry]! - first;
    if (positions.at(-1) !== position) positions.push(position);
    return positions.length - 1;
  });
  return {
    rowCount: to - from,
    rowTokens,
    // These are copies and not views, because sending a view to another thread copies its whole buffer.
    tokenIds: packed.tokenIds.slice(first, end),
    positionIds: packed.positionIds.slice(first, end),
    visibleEnd: packed.visibleEnd.slice(first, end),
    positions: Int32Array.from(positions),
    entryPosition,
    entryTarget: Int32Array.from(entries, (entry) => packed.entryTarget[entry]!),
    entryIndex: Int32Array.from(entries),
  };
}
