/** What all that keeps keys and values shares: how many bytes a token's are, and how rows of them are checked and copied. */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";

/** Copies `count` rows that begin every `stride` elements to where they lie beside each other. */
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

/** Four sums side by side: one would wait for each addition. Float32 values cannot overflow them. */
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

/** Detaches an array from its memory, which is freed by that. */
export function free(buffer: Float32Array): void {
  (buffer.buffer as ArrayBuffer).transfer(0);
}

/** Memory of one token's keys and values, over all layers. */
export function contextBytesPerToken(spec: ModelSpec): number {
  return spec.numLayers * 2 * spec.numKeyValueHeads * spec.headDim * Float32Array.BYTES_PER_ELEMENT;
}

/** How many tokens' keys and values fit into some memory; a whole number of pages. */
export function contextTokensIn(spec: ModelSpec, bytes: number): number {
  return Math.floor(bytes / (contextBytesPerToken(spec) * PAGE_ROWS)) * PAGE_ROWS;
}
