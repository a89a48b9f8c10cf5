import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { makePermutation } from "./permutation.ts";

describe("makePermutation()", () => {
  test("visits every element once, at every size from 1 to 300", () => {
    for (let size = 1; size <= 300; size++) {
      const elementAt = makePermutation(size, 7);
      const seen = new Set(Array.from({ length: size }, (_, position) => elementAt(position)));
      assert.equal(seen.size, size);
      assert.ok([...seen].every((element) => element >= 0 && element < size));
    }
  });

  test("gives the same order for the same key and another for another key", () => {
    const order = (key: number) => {
      const elementAt = makePermutation(1_000, key);
      return Array.from({ length: 1_000 }, (_, position) => elementAt(position));
    };
    assert.deepEqual(order(3), order(3));
    const other = order(4);
    const agreements = order(3).filter((element, position) => element === other[position]).length;
    assert.ok(agreements < 20, `${agreements} of 1000 positions agree`);
  });

  test("puts each element at each position about equally often over the keys", () => {
    const size = 10;
    const keys = 20_000;
    const counts = Array.from({ length: size * size }, () => 0);
    for (let key = 0; key < keys; key++) {
      const elementAt = makePermutation(size, key);
      for (let position = 0; position < size; position++) counts[position * size + elementAt(position)]!++;
    }
    // 2000 are expected of each, with a standard deviation of 42; six of these are tolerated.
    for (const count of counts) assert.ok(Math.abs(count - keys / size) < 260, `${count}`);
  });

  test("looks up elements in a range of 2^52 without visiting all of it", () => {
    const size = 2 ** 52;
    const elementAt = makePermutation(size, 1);
    const seen = new Set<number>();
    for (let position = 0; position < 1_000; position++) seen.add(elementAt(size - 1 - position));
    assert.equal(seen.size, 1_000);
    const mean = [...seen].reduce((sum, element) => sum + element / size, 0) / seen.size;
    assert.ok(Math.abs(mean - 0.5) < 0.06, `mean ${mean}`);
  });

  test("refuses a position outside the range and a size of zero", () => {
    assert.throws(() => makePermutation(5, 0)(5), RangeError);
    assert.throws(() => makePermutation(0, 0), RangeError);
  });
});
