import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { elementsOf } from "./order.ts";

const base = { size: 7, runSeed: 11, cursor: 0, count: 21, isShuffled: true };

describe("elementsOf()", () => {
  test("holds every element once in each pass and shuffles each pass differently", () => {
    const elements = elementsOf(base);
    const passes = [elements.slice(0, 7), elements.slice(7, 14), elements.slice(14)];
    for (const pass of passes) assert.deepEqual(pass.toSorted(), [0, 1, 2, 3, 4, 5, 6]);
    assert.notDeepEqual(passes[0], passes[1]);
    assert.notDeepEqual(passes[1], passes[2]);
  });

  test("gives the same elements however the range is divided into batches", () => {
    const whole = elementsOf(base);
    const pieces = [0, 5, 10, 15, 20].flatMap((cursor) =>
      elementsOf({ ...base, cursor, count: Math.min(5, 21 - cursor) }),
    );
    assert.deepEqual(pieces, whole);
  });

  test("keeps the order of the source when it is not shuffled", () => {
    assert.deepEqual(elementsOf({ ...base, isShuffled: false, cursor: 5, count: 4 }), [5, 6, 0, 1]);
  });

  test("gives another order for another run seed", () => {
    assert.notDeepEqual(elementsOf({ ...base, runSeed: 12 }), elementsOf(base));
  });

  test("repeats the element of a source that has only one", () => {
    assert.deepEqual(elementsOf({ ...base, size: 1, count: 3 }), [0, 0, 0]);
  });
});
