import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { KEY_BLOCK, PAGE_ROWS, resolveModelSpec } from "@hone/nn";
import type { HeadRows } from "../cache/kv-rows.ts";
import { asWords, RowLayout } from "../cache/row-layout.ts";
import { RowMemory } from "../cache/row-memory.ts";
import { RowPool } from "../cache/row-pool.ts";
import { ContextSlots } from "./context-slots.ts";

const spec = resolveModelSpec({
  vocabSize: 8,
  hiddenSize: 8,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  headDim: 2,
});
const layout = new RowLayout(spec);
const PARTS = spec.numLayers * 2;
const WIDTH = spec.numKeyValueHeads * spec.headDim;
const MOST_ROWS = 5 * PAGE_ROWS;

/** A sequence whose row at a position holds values that name both. */
class Subject {
  readonly pages: Int32Array;
  readonly number: number;
  start = 0;

  constructor(number: number) {
    this.number = number;
    const pages = Math.ceil(MOST_ROWS / PAGE_ROWS);
    // In descending order, so that no two pages are consecutive.
    this.pages = Int32Array.from({ length: pages }, (_, i) => (number + 1) * pages - i);
  }

  valueAt(position: number, part: number): number {
    return this.number * 100_000 + position * 100 + part;
  }

  append(pool: RowPool, count: number, also?: (position: number) => HeadRows | undefined): void {
    for (let i = 0; i < count && this.start < MOST_ROWS; i++, this.start++) {
      const page = this.pages[Math.floor(this.start / PAGE_ROWS)]!;
      const row = Array.from({ length: PARTS }, (_, part) =>
        asWords(Float32Array.from({ length: WIDTH }, (_, i) => this.valueAt(this.start, part * WIDTH + i))),
      );
      pool.write(page, this.start, row, 0, 1, also?.(this.start));
    }
  }
}

function assertBrought(
  slots: ContextSlots,
  pool: RowPool,
  subjects: readonly Subject[],
  length: number,
): number[] {
  const rooms = subjects.map(() => length);
  const places = slots.bring(subjects, rooms, pool).map(({ place }) => place);
  const all = subjects.map((_, index) => index);
  assert.deepEqual(
    [...places].sort((a, b) => a - b),
    all,
  );
  const [groups, width, rows] = [spec.numKeyValueHeads, spec.headDim, slots.length];
  assert.ok(rows >= length);
  for (const [index, subject] of subjects.entries()) {
    for (let part = 0; part < PARTS; part++) {
      const data = slots.read(part, subjects.length);
      assert.equal(data.length, subjects.length * groups * rows * width);
      for (let group = 0; group < groups; group++) {
        for (let position = 0; position < subject.start; position++) {
          const at = ((places[index]! * groups + group) * rows + position) * width;
          assert.equal(data[at], subject.valueAt(position, (part * groups + group) * width));
        }
      }
    }
  }
  return places;
}

describe("ContextSlots", () => {
  test("holds the rows of every sequence of a run while sequences come, grow and leave", () => {
    const random = new Random(8);
    const pool = new RowPool(layout, 200, new RowMemory());
    const slots = new ContextSlots(layout, new RowMemory());
    const subjects = Array.from({ length: 12 }, (_, number) => new Subject(number));
    for (let run = 0; run < 150; run++) {
      const chosen = subjects.filter(() => random.next() < 0.5);
      if (chosen.length === 0) continue;
      for (const subject of chosen) subject.append(pool, random.nextInt(4));
      const longest = Math.max(...chosen.map(({ start }) => start));
      const places = assertBrought(slots, pool, chosen, Math.ceil(longest / PAGE_ROWS) * PAGE_ROWS);
      // The run's own row, both when it is the slot's next one and when the slot lacks rows before it.
      for (const [index, subject] of chosen.entries()) {
        subject.append(pool, random.nextInt(2), (position) => slots.extend(places[index]!, position, 1));
      }
      // A sequence ends, and another one starts with the same pages.
      if (run % 10 === 9) subjects[random.nextInt(12)] = new Subject(random.nextInt(12));
    }
    slots.dispose();
  });

  test("gives a session's next turn the slot of the turn before, and no other slot", () => {
    const pool = new RowPool(layout, 200, new RowMemory());
    const slots = new ContextSlots(layout, new RowMemory());
    const turns = [new Subject(0), new Subject(1)];
    for (const subject of turns) subject.append(pool, 20);
    assert.deepEqual(assertBrought(slots, pool, turns, 64), [0, 1]);
    // The same rows and some more for another sequence; one of the contexts begins with other tokens.
    const [next, stranger] = [new Subject(1), new Subject(5)];
    for (const subject of [next, stranger]) subject.append(pool, 30);
    assert.deepEqual(assertBrought(slots, pool, [next, stranger], 64), [1, 0]);
    slots.dispose();
  });

  test("keeps a sequence in its slot when sequences in later slots leave", () => {
    const pool = new RowPool(layout, 200, new RowMemory());
    const slots = new ContextSlots(layout, new RowMemory());
    const [first, second] = [new Subject(0), new Subject(1)];
    for (const subject of [first, second]) subject.append(pool, 20);
    const placesOf = (...subjects: Subject[]) =>
      slots
        .bring(
          subjects,
          subjects.map(() => 32),
          pool,
        )
        .map(({ place }) => place);
    assert.deepEqual(placesOf(first, second), [0, 1]);
    assert.deepEqual(placesOf(second, first), [1, 0]);
    assert.deepEqual(placesOf(second), [0]);
    slots.dispose();
  });

  test("leaves out the rows that sequences share, which a takeover by one that begins otherwise may not read", () => {
    const pool = new RowPool(layout, 200, new RowMemory());
    const slots = new ContextSlots(layout, new RowMemory(), true);
    const [first, second, lone] = [new Subject(0), new Subject(1), new Subject(2)];
    for (const subject of [first, second, lone]) subject.append(pool, 2 * PAGE_ROWS + 4);
    second.pages.set(first.pages.subarray(0, 2));
    const bring = (...subjects: Subject[]) =>
      slots.bring(
        subjects,
        subjects.map(() => 3 * PAGE_ROWS),
        pool,
      );
    const [a, b] = bring(first, second);
    assert.deepEqual(a?.prefix, { pages: first.pages.slice(0, 2), start: 2 * PAGE_ROWS });
    assert.equal(b?.prefix, a?.prefix);
    assert.equal(slots.length, KEY_BLOCK);
    // The first row of a slot is the one after the prefix.
    const keys = slots.read(0, 2);
    const size = keys.length / 2;
    for (const [subject, at] of [
      [first, a],
      [second, b],
    ] as const)
      assert.equal(keys[at!.place * size], subject.valueAt(2 * PAGE_ROWS, 0));
    // It stays so while a sequence that shares nothing needs longer slots.
    const longer = bring(first, second, lone);
    assert.equal(longer[2]?.prefix, undefined);
    assert.equal(slots.length, 2 * KEY_BLOCK);
    assert.equal(longer[0]?.prefix, a?.prefix);
    // Its last row is the same, but its first page is another one.
    const next = new Subject(0);
    next.start = first.start;
    next.pages[0] = lone.pages[0]!;
    assert.equal(bring(next)[0]?.prefix, undefined);
    slots.dispose();
  });
});
