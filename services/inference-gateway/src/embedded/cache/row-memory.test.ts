import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RowMemory, SlotMemory } from "./row-memory.ts";

describe("RowMemory", () => {
  test("gives the next version the arrays of the last one, in their order", () => {
    const memory = new RowMemory();
    const [a, b, c] = [memory.take(8), memory.take(8), memory.take(4)];
    memory.keep([a, b, c]);
    assert.equal(memory.take(4), c);
    assert.equal(memory.take(8), a);
    assert.equal(memory.take(8), b);
    assert.notEqual(memory.take(8), a);
    assert.equal(memory.take(16).length, 16);
  });

  test("frees what the next version has not taken", () => {
    const memory = new RowMemory();
    const [a, b] = [memory.take(8), memory.take(8)];
    memory.keep([a, b]);
    memory.take(8);
    memory.keep([memory.take(4)]);
    assert.equal(a.length, 8, "it was taken");
    assert.equal(b.length, 0);
  });

  test("keeps nothing once it is cleared", () => {
    const memory = new SlotMemory();
    const arrays = [memory.pool, memory.decoding, memory.continuing].map((each) => {
      const array = each.take(8);
      each.keep([array]);
      return array;
    });
    memory.clear();
    assert.deepEqual(
      arrays.map(({ length }) => length),
      [0, 0, 0],
    );
  });
});
