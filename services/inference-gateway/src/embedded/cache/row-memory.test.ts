import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RowMemory, SlotMemory } from "./row-memory.ts";

const taken = (memory: RowMemory, length: number, isFloat = true) => ({
  words: memory.take(length, isFloat),
  isFloat,
});

describe("RowMemory", () => {
  test("gives the next version the arrays of the last one, in their order", () => {
    const memory = new RowMemory();
    const [a, b, c] = [taken(memory, 8), taken(memory, 8), taken(memory, 4)];
    memory.keep([a, b, c]);
    assert.equal(memory.take(4, true), c.words);
    assert.equal(memory.take(8, true), a.words);
    assert.equal(memory.take(8, true), b.words);
    assert.notEqual(memory.take(8, true), a.words);
    assert.equal(memory.take(16, true).length, 16);
  });

  test("gives no memory that held whole numbers for float32 numbers, which must be finite", () => {
    const memory = new RowMemory();
    const kept = taken(memory, 8, false);
    memory.keep([kept]);
    assert.notEqual(memory.take(8, true), kept.words);
    assert.equal(memory.take(8, false), kept.words);
  });

  test("frees what the next version has not taken", () => {
    const memory = new RowMemory();
    const [a, b] = [taken(memory, 8), taken(memory, 8)];
    memory.keep([a, b]);
    memory.take(8, true);
    memory.keep([taken(memory, 4)]);
    assert.equal(a.words.length, 8, "it was taken");
    assert.equal(b.words.length, 0);
  });

  test("keeps nothing once it is cleared", () => {
    const memory = new SlotMemory();
    const arrays = [memory.pool, memory.decoding, memory.continuing].map((each) => {
      const array = taken(each, 8);
      each.keep([array]);
      return array;
    });
    memory.clear();
    assert.deepEqual(
      arrays.map(({ words }) => words.length),
      [0, 0, 0],
    );
  });
});
