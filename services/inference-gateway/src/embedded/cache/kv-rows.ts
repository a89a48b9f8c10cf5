/** Functions of both K/V pools: the size of a token's keys and values, and how their rows are checked and copied. */

import { KEY_BLOCK, type ModelSpec, PAGE_ROWS } from "@hone/nn";
import type { EightBitType } from "@hone/tensor";
import { RowLayout, type RowPart } from "./row-layout.ts";

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

/** Fewer words are copied one by one faster than a view of them is made. */
const FEW_WORDS = 256;

/** Copies adjacent words. */
export function copyWords(
  source: Int32Array,
  from: number,
  target: Int32Array,
  to: number,
  count: number,
): void {
  if (count > FEW_WORDS) target.set(source.subarray(from, from + count), to);
  else for (let i = 0; i < count; i++) target[to + i] = source[from + i]!;
}

/** The memory of one part of slots, as words and as bytes. */
export interface SlotArray {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** Where rows of consecutive positions lie whose heads are apart. */
export interface HeadRows {
  /** Of each part (row-layout.ts). */
  readonly parts: readonly SlotArray[];
  /** Where the first head of the first row is, and the distance from there to the row's next head, in heads. */
  readonly first: number;
  readonly apart: number;
}

/** Copies `count` rows of a part, whose heads are adjacent, to rows whose heads are apart. */
export function spreadRows(
  source: Int32Array,
  from: number,
  part: RowPart,
  count: number,
  target: SlotArray,
  { first, apart }: HeadRows,
): void {
  const { headWords, words } = part;
  const spread = part.row.isBlocked ? copyToColumn : copyHead;
  for (let row = 0, at = from; row < count; row++) {
    for (let head = 0, to = first + row; head < words; head += headWords, to += apart, at += headWords)
      spread(source, at, headWords, target, to);
  }
}

function copyHead(source: Int32Array, from: number, size: number, { words }: SlotArray, head: number): void {
  for (let i = 0, to = head * size; i < size; i++) words[to + i] = source[from + i]!;
}

/** Copies the bytes of a head to a column of its block [width, KEY_BLOCK]. */
function copyToColumn(
  source: Int32Array,
  from: number,
  size: number,
  { bytes }: SlotArray,
  head: number,
): void {
  const block = Math.floor(head / KEY_BLOCK);
  let to = block * KEY_BLOCK * size * Int32Array.BYTES_PER_ELEMENT + (head % KEY_BLOCK);
  for (let i = 0; i < size; i++) {
    const word = source[from + i]!;
    bytes[to] = word;
    bytes[to + KEY_BLOCK] = word >> 8;
    bytes[to + 2 * KEY_BLOCK] = word >> 16;
    bytes[to + 3 * KEY_BLOCK] = word >> 24;
    to += 4 * KEY_BLOCK;
  }
}

/** The bits of a float32 number's exponent, which has all of them if it is not finite, and the lowest of them. */
const EXPONENT = 0x7f800000;
const LOWEST_EXPONENT = 0x00800000;

/** Whether words that are float32 numbers are finite: adding 1 to an exponent with all bits sets the sign. */
export function areWordsFinite(words: Int32Array, begin: number, end: number): boolean {
  let [a, b] = [0, 0];
  let at = begin;
  for (; at + 1 < end; at += 2) {
    a |= (words[at]! & EXPONENT) + LOWEST_EXPONENT;
    b |= (words[at + 1]! & EXPONENT) + LOWEST_EXPONENT;
  }
  if (at < end) a |= (words[at]! & EXPONENT) + LOWEST_EXPONENT;
  return (a | b) >= 0;
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
export function free(array: Float32Array | Int32Array): void {
  (array.buffer as ArrayBuffer).transfer(0);
}

/** Bytes of one token's keys and values in all layers. @param eightBits if they are stored in eight bits. @default in float32 */
export function contextBytesPerToken(spec: ModelSpec, eightBits?: EightBitType): number {
  return new RowLayout(spec, eightBits).tokenBytes;
}

/** The number of tokens whose keys and values fit in the memory, in whole pages. */
export function contextTokensIn(spec: ModelSpec, bytes: number, eightBits?: EightBitType): number {
  return Math.floor(bytes / (contextBytesPerToken(spec, eightBits) * PAGE_ROWS)) * PAGE_ROWS;
}
