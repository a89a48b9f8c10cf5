/**
 * Where the rows of a file begin, in less than a byte of memory a row.
 *
 * The rows are divided into blocks of STRIDE. The index holds the byte offset and the line number of the first row of each
 * block, and a row is found by reading on from there. One bit for each row of a block says whether the filter keeps it, so
 * reading from a filtered file is as fast as from a whole one.
 */

/** Rows of a block: at most 31 rows are skipped to reach one, and the bits of a block fill one 32-bit word. */
export const STRIDE = 32;

/** Where to begin reading, and which row from there on is meant. */
export interface RowPlace {
  readonly offset: number;
  /** Line at the offset, from 1. */
  readonly line: number;
  /** Number of rows to skip. */
  readonly skip: number;
}

/** The arrays have one entry for each block. */
export interface RowIndexParts {
  /** Where the block's first row begins, in bytes. */
  readonly offsets: Float64Array;
  /** Line number of the block's first row, from 1. */
  readonly lines: Float64Array;
  /** Number of kept rows in all blocks before it. */
  readonly before: Float64Array;
  /** Bit r = the block's row r is kept. */
  readonly kept: Uint32Array;
}

export class RowIndex {
  /** Number of kept rows. */
  readonly size: number;
  /** Number of rows that the filter left out. */
  readonly dropped: number;
  readonly parts: RowIndexParts;

  constructor(size: number, dropped: number, parts: RowIndexParts) {
    this.size = size;
    this.dropped = dropped;
    this.parts = parts;
  }

  /** Number of the block that holds a kept row. @throws {RangeError} when there is no such row. */
  blockOf(element: number): number {
    const { before } = this.parts;
    if (!Number.isInteger(element) || element < 0 || element >= this.size) {
      throw new RangeError(
        `there is no row ${element} among ${this.size} rows; rows are 0 to ${this.size - 1}`,
      );
    }
    // The last block that begins at or before the element.
    let low = 0;
    let high = before.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (before[middle]! <= element) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Where a kept row is found. @throws {RangeError} when there is no such row. */
  placeOf(element: number): RowPlace {
    const block = this.blockOf(element);
    const { offsets, lines, before, kept } = this.parts;
    let bits = kept[block]!;
    for (let rest = element - before[block]!; rest > 0; rest--) bits &= bits - 1;
    // The lowest remaining bit is that of the row.
    return { offset: offsets[block]!, line: lines[block]!, skip: 31 - Math.clz32(bits & -bits) };
  }

  /** Whether a row is kept; rows are numbered over the whole file. */
  isKept(row: number): boolean {
    const bits = this.parts.kept[Math.floor(row / STRIDE)] ?? 0;
    return ((bits >>> (row % STRIDE)) & 1) === 1;
  }
}

/** Builds an index row by row. */
export class RowIndexBuilder {
  readonly #offsets: number[] = [];
  readonly #lines: number[] = [];
  readonly #before: number[] = [];
  readonly #kept: number[] = [];
  #rows = 0;
  #size = 0;

  add(row: { readonly offset: number; readonly line: number }, isKept: boolean): void {
    const bit = this.#rows % STRIDE;
    if (bit === 0) {
      this.#offsets.push(row.offset);
      this.#lines.push(row.line);
      this.#before.push(this.#size);
      this.#kept.push(0);
    }
    if (isKept) {
      const block = this.#kept.length - 1;
      this.#kept[block] = (this.#kept[block]! | (1 << bit)) >>> 0;
      this.#size++;
    }
    this.#rows++;
  }

  build(): RowIndex {
    return new RowIndex(this.#size, this.#rows - this.#size, {
      offsets: Float64Array.from(this.#offsets),
      lines: Float64Array.from(this.#lines),
      before: Float64Array.from(this.#before),
      kept: Uint32Array.from(this.#kept),
    });
  }
}
