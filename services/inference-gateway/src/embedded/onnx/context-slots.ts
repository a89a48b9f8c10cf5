/**
 * The contexts of running sequences, each in one piece: per layer two arrays [S, G, L, D] (S slots, G key/value heads,
 * L context positions, D head size), which onnxruntime reads in place. They hold copies of pool rows.
 *
 * T1: a slot belongs to the sequence whose page table it names, and has its rows [0, filled). Rows of a position do not
 *     change while the sequence runs, so a slot stays right when the sequence pauses.
 * T2: the sequences of a run have slots 0 to S-1 in any order, so that the first part of each array is the input of the run.
 *     The arrays have room for all rows of the pool, which all sequences together can need. Parts that are not written to take
 *     no memory, and contexts that grow move within them.
 * T3: all values of the arrays are finite, as masked rows are multiplied by 0.
 * T4: a sequence that continues where another one ended, as a session's next turn does, takes over its slot. It is recognized by
 *     the last layer's key of the slot's last row, which depends on all tokens up to it: if the pool has the same bits
 *     there, the rows before are those of the same tokens.
 */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";
import { free, type HeadRows, spreadRows } from "../cache/kv-rows.ts";
import type { RowMemory } from "../cache/row-memory.ts";
import type { RowPool } from "../cache/row-pool.ts";
import type { RunItem } from "../policy-runner.ts";

interface Slot {
  readonly pages: Int32Array;
  filled: number;
}

export class ContextSlots {
  readonly #groups: number;
  readonly #headDim: number;
  #length = 0;
  #capacity = 0;
  #slots: (Slot | undefined)[] = [];
  /** The keys of layer 0, 1, ..., then the values. */
  #parts: Float32Array[];
  readonly #memory: RowMemory;

  constructor(spec: ModelSpec, memory: RowMemory) {
    this.#memory = memory;
    this.#groups = spec.numKeyValueHeads;
    this.#headDim = spec.headDim;
    this.#parts = Array.from({ length: 2 * spec.numLayers }, () => new Float32Array(0));
  }

  /** Whether the sequence with these pages has a slot. */
  has(pages: Int32Array): boolean {
    return this.#slots.some((slot) => slot?.pages === pages);
  }

  /** The shape of {@link keys} and {@link values} for a run of that many sequences. @param length other than that of the slots */
  shapeFor(sequences: number, length = this.#length): readonly [number, number, number, number] {
    return [sequences, this.#groups, length, this.#headDim];
  }

  keys(layer: number, sequences: number): Float32Array {
    return this.#parts[layer]!.subarray(0, sequences * this.#slotSize);
  }

  values(layer: number, sequences: number): Float32Array {
    return this.#parts[this.#parts.length / 2 + layer]!.subarray(0, sequences * this.#slotSize);
  }

  /**
   * Assigns slots to the items of a run, with the rows before their new tokens.
   * @param length most context positions that an item needs room for.
   * @returns the slot of each item (T2).
   */
  bring(items: readonly RunItem[], length: number, pool: RowPool): number[] {
    // Rows that are a little too long cost less than moving everything; rows of twice the length cost more.
    const isFitting = this.#length >= length && this.#length <= 2 * length;
    if (!isFitting || this.#capacity < items.length) this.#resize(items.length, length, pool);
    const places = this.#assign(items, pool);
    for (const [index, { pages, start }] of items.entries()) {
      const place = places[index]!;
      const slot = this.#slots[place]!;
      for (let position = slot.filled; position < start; ) {
        const inPage = position % PAGE_ROWS;
        const count = Math.min(PAGE_ROWS - inPage, start - position);
        const { rows, first, apart } = pool.at(pages[Math.floor(position / PAGE_ROWS)]!, inPage);
        const heads = this.#headRows(place, position);
        for (let part = 0, from = first; part < this.#parts.length; part++, from += apart)
          spreadRows(rows, from, this.#groups * this.#headDim, count, heads, part);
        position += count;
      }
      slot.filled = Math.max(slot.filled, start);
    }
    return places;
  }

  /**
   * Takes rows of consecutive positions into a slot, if they are its next ones and there is room.
   * @returns where they must be written at once: they are in the processor's cache then, and would not be before the next run.
   */
  extend(place: number, position: number, count: number): HeadRows | undefined {
    const slot = this.#slots[place]!;
    if (slot.filled !== position || position + count > this.#length) return undefined;
    slot.filled += count;
    return this.#headRows(place, position);
  }

  dispose(): void {
    this.#memory.keep(this.#parts.splice(0));
    this.#slots = [];
  }

  get #slotSize(): number {
    return this.#groups * this.#length * this.#headDim;
  }

  /** T2: a sequence with a slot below S keeps it, and the others move. */
  #assign(items: readonly RunItem[], pool: RowPool): number[] {
    this.#takeOver(items, pool);
    const slotOf = new Map(
      this.#slots.flatMap((slot, place) => (slot ? [[slot.pages, place] as const] : [])),
    );
    const places = items.map(({ pages }) => slotOf.get(pages) ?? -1);
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
        this.#slots[next] = { pages: items[index]!.pages, filled: 0 };
      }
    }
    return places;
  }

  /** T4 */
  #takeOver(items: readonly RunItem[], pool: RowPool): void {
    const present = new Set(items.map(({ pages }) => pages));
    const known = new Set(this.#slots.map((slot) => slot?.pages));
    for (const item of items) {
      if (item.start === 0 || known.has(item.pages)) continue;
      const place = this.#slots.findIndex(
        (slot, at) => slot !== undefined && !present.has(slot.pages) && this.#isBegin(at, slot, item, pool),
      );
      if (place >= 0) this.#slots[place] = { pages: item.pages, filled: this.#slots[place]!.filled };
    }
  }

  /** Whether all rows of a slot are rows of the sequence. */
  #isBegin(place: number, { filled }: Slot, { pages, start }: RunItem, pool: RowPool): boolean {
    if (filled === 0 || filled > start) return false;
    const last = this.#parts.length / 2 - 1;
    const width = this.#headDim;
    const { rows, first, apart } = pool.at(pages[Math.floor((filled - 1) / PAGE_ROWS)]!, filled - 1);
    const from = first + last * apart;
    const at = place * this.#slotSize + (filled - 1) * width;
    const held = this.#parts[last]!;
    for (let i = 0; i < width; i++) if (held[at + i] !== rows[from + i]) return false;
    return true;
  }

  /** Where a slot's rows are, from a position on. */
  #headRows(place: number, position: number): HeadRows {
    const headDim = this.#headDim;
    const first = place * this.#slotSize + position * headDim;
    return { parts: this.#parts, first, headSize: this.#length * headDim, headDim };
  }

  #move(from: number, to: number): void {
    const size = this.#slotSize;
    for (const buffer of this.#parts) buffer.copyWithin(to * size, from * size, (from + 1) * size);
    this.#slots[to] = this.#slots[from];
  }

  /** Moves the rows that still fit; the others are copied from the pool when they are needed. */
  #resize(capacity: number, length: number, pool: RowPool): void {
    const kept = length < this.#length ? [] : this.#slots.slice(0, this.#capacity);
    const slots = Math.max(capacity, kept.length);
    const needed = slots * this.#groups * length * this.#headDim;
    const usual = pool.capacity * PAGE_ROWS * this.#groups * this.#headDim;
    const resized = (buffer: Float32Array) => {
      const isFitting = buffer.length >= needed;
      const target = isFitting ? buffer : this.#memory.take(Math.max(needed, usual));
      this.#moveRows(buffer, target, kept, length);
      if (target !== buffer) free(buffer);
      return target;
    };
    this.#parts = this.#parts.map(resized);
    this.#slots = kept;
    this.#capacity = slots;
    this.#length = length;
  }

  /** Moves the heads apart for longer contexts, the last one first, so that none is overwritten before it has moved. */
  #moveRows(from: Float32Array, to: Float32Array, kept: readonly (Slot | undefined)[], length: number): void {
    const [before, after] = [this.#length * this.#headDim, length * this.#headDim];
    for (let head = kept.length * this.#groups - 1; head >= 0; head--) {
      const slot = kept[Math.floor(head / this.#groups)];
      if (slot === undefined) continue;
      const begin = head * before;
      const end = begin + slot.filled * this.#headDim;
      if (from === to) to.copyWithin(head * after, begin, end);
      else to.set(from.subarray(begin, end), head * after);
    }
  }
}
