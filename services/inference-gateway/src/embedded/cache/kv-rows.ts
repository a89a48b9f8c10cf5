/** Functions of both K/V pools: the size of a token's keys and values, and how their rows are checked and copied. */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";

/** Copies `count` rows that begin every `stride` elements, so that the copies are adjacent. */
export function copyRows(
  source: Float32Array,
  from: number,
  stride: number,
  target: Float32Array,
  to: number,
  width: number,
  count: number,
): void {
  for (let row = 0, out = to; row < count; row++, out += width) {
    const begin = from + row * stride;
    for (let i = 0; i < width; i++) target[out + i] = source[begin + i]!;
  }
}

/** Where rows of consecutive positions lie whose heads are apart. */
export interface HeadRows {
  /** The array of each part: the keys of layer 0, 1, ..., then the values. */
  readonly parts: readonly Float32Array[];
  /** Where the first head of the first row is. */
  readonly first: number;
  /** Distance from there to the row's next head. */
  readonly headSize: number;
  readonly headDim: number;
}

/**
 * Copies `count` rows [width] to rows whose heads are apart, and checks their values on the way.
 * @param part of the `heads`
 * @returns whether the values are finite.
 */
export function spreadRows(
  source: Float32Array,
  from: number,
  width: number,
  count: number,
  { parts, first, headSize, headDim }: HeadRows,
  part: number,
): boolean {
  const target = parts[part]!;
  // Two sums, which the processor computes at the same time, as in isAllFinite.
  let [a, b] = [0, 0];
  for (let row = 0, at = from; row < count; row++) {
    for (
      let head = 0, to = first + row * headDim;
      head < width;
      head += headDim, to += headSize, at += headDim
    ) {
      let i = 0;
      for (; i + 3 < headDim; i += 4) {
        const w = source[at + i]!;
        const x = source[at + i + 1]!;
        const y = source[at + i + 2]!;
        const z = source[at + i + 3]!;
        a += w + x;
        b += y + z;
        target[to + i] = w;
        target[to + i + 1] = x;
        target[to + i + 2] = y;
        target[to + i + 3] = z;
      }
      for (; i < headDim; i++) {
        const x = source[at + i]!;
        a += x;
        target[to + i] = x;
      }
    }
  }
  return Number.isFinite(a + b);
}

/** Adds in four sums, which the processor computes at the same time. Sums of float32 values cannot overflow in float64. */
export function isAllFinite(values: Float32Array, begin: number, end: number): boolean {
  let [a, b, c, d] = [0, 0, 0, 0];
  let at = begin;
  for (; at + 3 < end; at += 4) {
    a += values[at]!;
    b += values[at + 1]!;
    c += values[at + 2]!;
    d += values[at + 3]!;
  }
  for (; at < end; at++) a += values[at]!;
  return Number.isFinite(a + b + c + d);
}

/** Detaches an array from its memory, which frees the memory. */
export function free(buffer: Float32Array): void {
  (buffer.buffer as ArrayBuffer).transfer(0);
}

/** Bytes of one token's keys and values in all layers. */
export function contextBytesPerToken(spec: ModelSpec): number {
  return spec.numLayers * 2 * spec.numKeyValueHeads * spec.headDim * Float32Array.BYTES_PER_ELEMENT;
}

/** The number of tokens whose keys and values fit in the memory, in whole pages. */
export function contextTokensIn(spec: ModelSpec, bytes: number): number {
  return Math.floor(bytes / (contextBytesPerToken(spec) * PAGE_ROWS)) * PAGE_ROWS;
}
