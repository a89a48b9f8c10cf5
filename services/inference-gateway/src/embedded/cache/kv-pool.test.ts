import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PAGE_ROWS, resolveModelSpec } from "@hone/nn";
import { KvPool } from "./kv-pool.ts";
import { contextTokensIn } from "./kv-rows.ts";

const spec = resolveModelSpec({
  vocabSize: 8,
  hiddenSize: 8,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
});
/** 2 layers x (keys, values) x 2 heads x 2 wide. */
const ROW = 16;

/** Row of a position, in the order of the graph's output: keys of both layers, then values. */
function readRow(pool: KvPool, page: number, position: number): number[] {
  const [groups, pages, pageSize] = pool.shape;
  const width = pageSize / PAGE_ROWS;
  const row: number[] = [];
  for (const buffer of [...pool.keys, ...pool.values]) {
    for (let group = 0; group < groups; group++) {
      const at = (group * pages + page) * pageSize + (position % PAGE_ROWS) * width;
      row.push(...buffer.subarray(at, at + width));
    }
  }
  return row;
}

const rowsOf = (count: number) => Float32Array.from({ length: count * ROW }, (_, i) => i + 1);
const zeros = new Array<number>(ROW).fill(0);

describe("KvPool", () => {
  test("keeps the rows that were written", () => {
    const pool = new KvPool(spec, 1_000);
    const fresh = rowsOf(2);
    assert.ok(pool.write(1, 3, fresh, 0, 1));
    assert.ok(pool.write(1, 20, fresh, 1, 1));
    assert.equal(pool.shape[1], 1_000);
    assert.deepEqual(readRow(pool, 1, 3), [...fresh.subarray(0, ROW)]);
    assert.deepEqual(readRow(pool, 1, 4), [...fresh.subarray(ROW)]);
    assert.deepEqual(readRow(pool, 0, 0), zeros);
    assert.deepEqual(readRow(pool, 1, 5), zeros);
  });

  test("copies the first rows of a page and no more", () => {
    const pool = new KvPool(spec, 1_000);
    const fresh = rowsOf(3);
    for (let i = 0; i < 3; i++) pool.write(1, i, fresh, i, 1);
    pool.copyRows(1, 700, 2);
    assert.deepEqual(readRow(pool, 700, 1), readRow(pool, 1, 1));
    assert.deepEqual(readRow(pool, 700, 2), zeros);
  });

  test("writes zeros in place of a row that is not finite, and returns false", () => {
    const pool = new KvPool(spec, 10);
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const fresh = rowsOf(1);
      fresh[5] = bad;
      assert.equal(pool.write(2, 7, fresh, 0, 1), false);
      assert.deepEqual(readRow(pool, 2, 7), zeros);
    }
  });

  test("contextTokensIn() counts whole pages", () => {
    assert.equal(contextTokensIn(spec, 4 * ROW * (3 * PAGE_ROWS + 5)), 3 * PAGE_ROWS);
  });
});
