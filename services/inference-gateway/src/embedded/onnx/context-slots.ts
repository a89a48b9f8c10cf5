/**
 * The contexts of running sequences, each in one piece: for each part of a row (row-layout.ts) an array [S, G, L, width] (S slots, G
 * key/value heads, L context positions), which onnxruntime reads in place. They hold copies of pool rows.
 *
 * T1: a slot belongs to the sequence whose page table it names, and has its rows [0, filled), or those after the prefix that it shares
 *     with others, which is chosen when it gets the slot. Rows of a position do not change while the sequence runs, so a slot stays
 *     right when the sequence pauses.
 * T2: the sequences of a run have slots 0 to S-1 in any order, so that the first part of each array is the input of the run.
 *     The arrays have room for all rows of the pool, which all sequences together can need. Parts that are not written to take
 *     no memory, and contexts that grow move within them.
 * T3: all numbers of the arrays are finite, as masked rows are multiplied by 0.
 * T4: a sequence that continues where another one ended, as a session's next turn does, takes over its slot. It is recognized by
 *     the last layer's key and value of the slot's last row, which depend on all tokens up to it: if the pool has the same bits
 *     there, the rows before are those of the same tokens. If the slot has a prefix, the sequence must begin with its pages.
 */

import { KEY_BLOCK, PAGE_ROWS } from "@hone/nn";
import type { TensorData } from "@hone/tensor";
import { free, type HeadRows, type SlotArray, spreadRows } from "../cache/kv-rows.ts";
import { asRowData, type RowLayout, type RowPart } from "../cache/row-layout.ts";
import type { RowMemory } from "../cache/row-memory.ts";
import type { RowPool } from "../cache/row-pool.ts";
import { beginsWith, choosePrefix, type Prefix, type PrefixItem } from "./shared-prefix.ts";

interface Slot {
  readonly pages: Int32Array;
  readonly prefix: Prefix | undefined;
  filled: number;
}

/** The place of a sequence of a run, and the prefix whose rows its slot lacks. */
export interface SlotPlace {
  readonly place: number;
  readonly prefix: Prefix | undefined;
}

export class ContextSlots {
  readonly #layout: RowLayout;
  #length = 0;
  #capacity = 0;
  #slots: (Slot | undefined)[] = [];
  #parts: SlotArray[];
  readonly #memory: RowMemory;
  readonly #sharesPrefixes: boolean;

  /** @param sharesPrefixes whether the first rows of a sequence may be left out, as it reads them with others. @default false */
  constructor(layout: RowLayout, memory: RowMemory, sharesPrefixes = false) {
    this.#memory = memory;
    this.#sharesPrefixes = sharesPrefixes;
    this.#layout = layout;
    this.#parts = layout.parts.map(() => slotArray(new Int32Array(0)));
  }

  /** Rows of each slot. */
  get length(): number {
    return this.#length;
  }

  /** A part of the slots of a run with that many sequences [S, G, L, width]. */
  read(part: number, sequences: number): TensorData {
    const { headWords } = this.#layout.parts[part]!;
    return asRowData(
      this.#layout.parts[part]!,
      this.#parts[part]!.words.subarray(0, sequences * this.#slotHeads * headWords),
    );
  }

  /**
   * Assigns slots to the items of a run, with the rows before their new tokens.
   * @param rooms the context positions that each item needs room for, with those of its prefix.
   * @returns the slot of each item (T2).
   */
  bring(items: readonly PrefixItem[], rooms: readonly number[], pool: RowPool): SlotPlace[] {
    this.#takeOver(items, pool);
    const prefixes = this.#prefixesOf(items);
    const length = wholeBlocks(Math.max(...rooms.map((room, index) => room - firstRow(prefixes[index]))));
    // Rows that are a little too long cost less than moving everything; rows of twice the length cost more.
    const isFitting = this.#length >= length && this.#length <= 2 * length;
    if (!isFitting || this.#capacity < items.length) this.#resize(items.length, length, pool);
    const places = this.#assign(items, prefixes);
    for (const [index, { pages, start }] of items.entries()) {
      const place = places[index]!;
      const slot = this.#slots[place]!;
      for (let position = slot.filled; position < start; ) {
        const inPage = position % PAGE_ROWS;
        const count = Math.min(PAGE_ROWS - inPage, start - position);
        const { words, first } = pool.at(pages[Math.floor(position / PAGE_ROWS)]!);
        const heads = this.#headRows(place, position);
        for (const [index, part] of this.#layout.parts.entries()) {
          const from = first + part.inPage + inPage * part.words;
          spreadRows(words, from, part, count, this.#parts[index]!, heads);
        }
        position += count;
      }
      slot.filled = Math.max(slot.filled, start);
    }
    return places.map((place, index) => ({ place, prefix: prefixes[index] }));
  }

  /**
   * Takes rows of consecutive positions into a slot, if they are its next ones and there is room.
   * @returns where they must be written at once: they are in the processor's cache then, and would not be before the next run.
   */
  extend(place: number, position: number, count: number): HeadRows | undefined {
    const slot = this.#slots[place]!;
    const end = position + count - firstRow(slot.prefix);
    if (slot.filled !== position || end > this.#length) return undefined;
    slot.filled += count;
    return this.#headRows(place, position);
  }

  dispose(): void {
    const { parts } = this.#layout;
    this.#memory.keep(this.#parts.splice(0).map(({ words }, at) => ({ words, isFloat: parts[at]!.isFloat })));
    this.#slots = [];
  }

  /** Heads of all rows of a slot. */
  get #slotHeads(): number {
    return this.#layout.groups * this.#length;
  }

  /** Which slot is whose, by page tables. */
  #placeOf(): Map<Int32Array, number> {
    return new Map(this.#slots.flatMap((slot, place) => (slot ? [[slot.pages, place] as const] : [])));
  }

  /** T2: a sequence with a slot below S keeps it, and the others move. */
  #assign(items: readonly PrefixItem[], prefixes: readonly (Prefix | undefined)[]): number[] {
    const placeOf = this.#placeOf();
    const places = items.map(({ pages }) => placeOf.get(pages) ?? -1);
    const taken = new Set(places);
    let next = 0;
    for (const [index, place] of places.entries()) {
      if (place >= 0 && place < items.length) continue;
      while (taken.has(next)) next++;
      taken.add(next);
      places[index] = next;
      if (place >= 0) {
        this.#move(place, next);
        this.#slots[place] = undefined;
      } else {
        const prefix = prefixes[index];
        this.#slots[next] = { pages: items[index]!.pages, prefix, filled: firstRow(prefix) };
      }
    }
    return places;
  }

  /** The prefix of each item: that of its slot, or one that is chosen now. */
  #prefixesOf(items: readonly PrefixItem[]): (Prefix | undefined)[] {
    if (!this.#sharesPrefixes) return items.map(() => undefined);
    const placeOf = this.#placeOf();
    const prefixes = items.map(({ pages }) => this.#slots[placeOf.get(pages) ?? -1]?.prefix);
    const members = new Map<Prefix, number>();
    const count = (prefix: Prefix | undefined) => {
      if (prefix !== undefined) members.set(prefix, (members.get(prefix) ?? 0) + 1);
    };
    for (const prefix of prefixes) count(prefix);
    for (const [index, item] of items.entries()) {
      if (placeOf.has(item.pages)) continue;
      prefixes[index] = choosePrefix(item, items.toSpliced(index, 1), members);
      count(prefixes[index]);
    }
    return prefixes;
  }

  /** T4 */
  #takeOver(items: readonly PrefixItem[], pool: RowPool): void {
    const present = new Set(items.map(({ pages }) => pages));
    const known = new Set(this.#slots.map((slot) => slot?.pages));
    for (const item of items) {
      if (item.start === 0 || known.has(item.pages)) continue;
      const place = this.#slots.findIndex(
        (slot, at) => slot !== undefined && !present.has(slot.pages) && this.#isBegin(at, slot, item, pool),
      );
      if (place >= 0) this.#slots[place] = { ...this.#slots[place]!, pages: item.pages };
    }
  }

  /** Whether all rows of a slot are rows of the sequence. */
  #isBegin(place: number, { filled, prefix }: Slot, { pages, start }: PrefixItem, pool: RowPool): boolean {
    const first = firstRow(prefix);
    if (filled === first || filled > start) return false;
    if (prefix !== undefined && !beginsWith(pages, prefix.pages)) return false;
    const { words, first: page } = pool.at(pages[Math.floor((filled - 1) / PAGE_ROWS)]!);
    const { parts, layers } = this.#layout;
    const row = this.#rowOf(place, filled - 1);
    return parts.every(({ row: { isBlocked }, layer, inPage, words: width, headWords }, index) => {
      if (layer < layers - 1 || isBlocked) return true;
      const stored = page + inPage + ((filled - 1) % PAGE_ROWS) * width;
      const held = this.#parts[index]!.words;
      for (let i = 0; i < headWords; i++) if (held[row * headWords + i] !== words[stored + i]) return false;
      return true;
    });
  }

  /** Where the first head of a position's row is, in heads. */
  #rowOf(place: number, position: number): number {
    return place * this.#slotHeads + position - firstRow(this.#slots[place]!.prefix);
  }

  /** Where a slot's rows are, from a position on. */
  #headRows(place: number, position: number): HeadRows {
    return { parts: this.#parts, first: this.#rowOf(place, position), apart: this.#length };
  }

  #move(from: number, to: number): void {
    for (const [index, { headWords }] of this.#layout.parts.entries()) {
      const size = this.#slotHeads * headWords;
      this.#parts[index]!.words.copyWithin(to * size, from * size, (from + 1) * size);
    }
    this.#slots[to] = this.#slots[from];
  }

  /** Moves the rows that still fit; the others are copied from the pool when they are needed. */
  #resize(capacity: number, length: number, pool: RowPool): void {
    const kept = length < this.#length ? [] : this.#slots.slice(0, this.#capacity);
    const slots = Math.max(capacity, kept.length);
    const rows = Math.max(slots * length, pool.capacity * PAGE_ROWS);
    const resized = (array: SlotArray, index: number) => {
      const part = this.#layout.parts[index]!;
      const { words } = array;
      const isFitting = words.length >= slots * length * part.words;
      const target = isFitting ? words : this.#memory.take(rows * part.words, part.isFloat);
      this.#moveRows(words, target, part, kept, length);
      if (target === words) return array;
      free(words);
      return slotArray(target);
    };
    this.#parts = this.#parts.map(resized);
    this.#slots = kept;
    this.#capacity = slots;
    this.#length = length;
  }

  /** Moves the heads apart for longer contexts, the last one first, so that none is overwritten before it has moved. */
  #moveRows(
    from: Int32Array,
    to: Int32Array,
    { row, headWords }: RowPart,
    kept: readonly (Slot | undefined)[],
    length: number,
  ): void {
    const [before, after] = [this.#length * headWords, length * headWords];
    for (let head = kept.length * this.#layout.groups - 1; head >= 0; head--) {
      const slot = kept[Math.floor(head / this.#layout.groups)];
      if (slot === undefined) continue;
      const begin = head * before;
      const filled = slot.filled - firstRow(slot.prefix);
      const end = begin + (row.isBlocked ? wholeBlocks(filled) : filled) * headWords;
      if (from === to) to.copyWithin(head * after, begin, end);
      else to.set(from.subarray(begin, end), head * after);
    }
  }
}

function slotArray(words: Int32Array): SlotArray {
  return { words, bytes: new Uint8Array(words.buffer, words.byteOffset, words.byteLength) };
}

function wholeBlocks(rows: number): number {
  return Math.ceil(rows / KEY_BLOCK) * KEY_BLOCK;
}

/** The first position whose row is in a slot. */
export function firstRow(prefix: Prefix | undefined): number {
  return prefix?.start ?? 0;
}
