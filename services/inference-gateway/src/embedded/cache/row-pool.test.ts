import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveModelSpec } from "@hone/nn";
import { RowMemory } from "./row-memory.ts";
import { RowPool } from "./row-pool.ts";

/** Blocks of 32 MiB hold two pages of it. */
const spec = resolveModelSpec({
  vocabSize: 8,
  hiddenSize: 2_048,
  numLayers: 56,
  numHeads: 32,
  numKeyValueHeads: 32,
  intermediateSize: 8,
});
const PARTS = 2 * 56;
const WIDTH = 2_048;
const ZEROS = new Array<Float32Array>(PARTS).fill(new Float32Array(WIDTH));

const rowsOf = (count: number) =>
  Array.from({ length: PARTS }, (_, part) =>
    Float32Array.from({ length: count * WIDTH }, (_, i) => ((part * 31 + i) % 1_009) + 1),
  );

const rowIn = (fresh: readonly Float32Array[], token: number) =>
  fresh.map((part) => part.slice(token * WIDTH, (token + 1) * WIDTH));

function readRow(pool: RowPool, page: number, position: number): Float32Array[] {
  const { rows, first, apart } = pool.at(page, position);
  return ZEROS.map((_, part) => rows.slice(first + part * apart, first + part * apart + WIDTH));
}

describe("RowPool", () => {
  test("keeps the rows that were written, in pages of several blocks", () => {
    const pool = new RowPool(spec, 10, new RowMemory());
    const fresh = rowsOf(3);
    const places = [
      [2, 3],
      [3, 20],
      [7, 47],
    ] as const;
    for (const [token, [page, position]] of places.entries()) {
      assert.ok(pool.write(page, position, fresh, token, 1));
    }
    for (const [token, [page, position]] of places.entries()) {
      assert.deepEqual(readRow(pool, page, position), rowIn(fresh, token));
    }
    assert.deepEqual(readRow(pool, 2, 4), ZEROS);
    pool.dispose();
  });

  test("copies the first rows of a page and no more", () => {
    const pool = new RowPool(spec, 10, new RowMemory());
    const fresh = rowsOf(3);
    assert.ok(pool.write(1, 0, fresh, 0, 3));
    pool.copyRows(1, 8, 2);
    assert.deepEqual(readRow(pool, 8, 1), rowIn(fresh, 1));
    assert.deepEqual(readRow(pool, 8, 2), ZEROS);
    pool.dispose();
  });

  test("writes zeros in place of rows with a value that is not finite, and returns false", () => {
    const pool = new RowPool(spec, 10, new RowMemory());
    for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      const fresh = rowsOf(2);
      fresh[7]![WIDTH + 5] = bad;
      assert.equal(pool.write(2, 7, fresh, 0, 2), false);
      assert.deepEqual(readRow(pool, 2, 8), ZEROS);
      assert.deepEqual(readRow(pool, 2, 7), ZEROS);
    }
    pool.dispose();
  });

  test("writes the rows, or the zeros, to a place with other distances as well", () => {
    const headDim = 64;
    const headSize = 7 * headDim;
    const pool = new RowPool(spec, 10, new RowMemory());
    const fresh = rowsOf(3);
    const also = {
      parts: ZEROS.map(() => new Float32Array((WIDTH / headDim) * headSize).fill(-1)),
      first: 2 * headDim,
      headSize,
      headDim,
    };
    const rowAt = (position: number) =>
      also.parts.map((part) =>
        Float32Array.from(
          { length: WIDTH },
          (_, i) => part[Math.floor(i / headDim) * headSize + position * headDim + (i % headDim)]!,
        ),
      );
    const untouched = ZEROS.map((row) => row.map(() => -1));
    assert.equal(pool.write(2, 7, fresh, 1, 2, also), true);
    assert.deepEqual([1, 2, 3, 4].map(rowAt), [untouched, rowIn(fresh, 1), rowIn(fresh, 2), untouched]);
    assert.deepEqual([readRow(pool, 2, 7), readRow(pool, 2, 8)], [rowIn(fresh, 1), rowIn(fresh, 2)]);
    fresh[3]![WIDTH + 9] = Number.NaN;
    assert.equal(pool.write(2, 7, fresh, 1, 2, also), false);
    assert.deepEqual([1, 2, 3, 4].map(rowAt), [untouched, ZEROS, ZEROS, untouched]);
    assert.deepEqual([readRow(pool, 2, 7), readRow(pool, 2, 8)], [ZEROS, ZEROS]);
    pool.dispose();
  });
});
