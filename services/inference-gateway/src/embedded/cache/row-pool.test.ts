import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KEY_BLOCK, PAGE_ROWS, resolveModelSpec } from "@hone/nn";
import { asWords, RowLayout } from "./row-layout.ts";
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
const layout = new RowLayout(spec);
const PARTS = 2 * 56;
const WIDTH = 2_048;
const ZEROS = new Array<Int32Array>(PARTS).fill(new Int32Array(WIDTH));

const rowsOf = (count: number) =>
  Array.from({ length: PARTS }, (_, part) =>
    asWords(Float32Array.from({ length: count * WIDTH }, (_, i) => ((part * 31 + i) % 1_009) + 1)),
  );

const rowIn = (fresh: readonly Int32Array[], token: number) =>
  fresh.map((part) => part.slice(token * WIDTH, (token + 1) * WIDTH));

function readRow(pool: RowPool, page: number, position: number): Int32Array[] {
  const { words, first } = pool.at(page);
  return layout.parts.map(({ inPage, words: size }) => {
    const begin = first + inPage + (position % PAGE_ROWS) * size;
    return words.slice(begin, begin + size);
  });
}

/** Writes a number that is not finite. */
function spoil(words: Int32Array, at: number, value: number): void {
  new Float32Array(words.buffer)[at] = value;
}

describe("RowPool", () => {
  test("keeps the rows that were written, in pages of several blocks", () => {
    const pool = new RowPool(layout, 10, new RowMemory());
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
    const pool = new RowPool(layout, 10, new RowMemory());
    const fresh = rowsOf(3);
    assert.ok(pool.write(1, 0, fresh, 0, 3));
    pool.copyRows(1, 8, 2);
    assert.deepEqual(readRow(pool, 8, 1), rowIn(fresh, 1));
    assert.deepEqual(readRow(pool, 8, 2), ZEROS);
    pool.dispose();
  });

  test("writes zeros in place of rows with a value that is not finite, and returns false", () => {
    const pool = new RowPool(layout, 10, new RowMemory());
    for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      const fresh = rowsOf(2);
      spoil(fresh[7]!, WIDTH + 5, bad);
      assert.equal(pool.write(2, 7, fresh, 0, 2), false);
      assert.deepEqual(readRow(pool, 2, 8), ZEROS);
      assert.deepEqual(readRow(pool, 2, 7), ZEROS);
    }
    pool.dispose();
  });

  test("writes the rows, or the zeros, to a place with other distances as well", () => {
    const headDim = 64;
    const apart = 7;
    const pool = new RowPool(layout, 10, new RowMemory());
    const fresh = rowsOf(3);
    const also = {
      parts: ZEROS.map(() => {
        const words = new Int32Array(WIDTH * apart).fill(-1);
        return { words, bytes: new Uint8Array(words.buffer) };
      }),
      first: 2,
      apart,
    };
    const rowAt = (position: number) =>
      also.parts.map(({ words }) =>
        Int32Array.from(
          { length: WIDTH },
          (_, i) => words[(Math.floor(i / headDim) * apart + position) * headDim + (i % headDim)]!,
        ),
      );
    const untouched = ZEROS.map((row) => row.map(() => -1));
    assert.equal(pool.write(2, 7, fresh, 1, 2, also), true);
    assert.deepEqual([1, 2, 3, 4].map(rowAt), [untouched, rowIn(fresh, 1), rowIn(fresh, 2), untouched]);
    assert.deepEqual([readRow(pool, 2, 7), readRow(pool, 2, 8)], [rowIn(fresh, 1), rowIn(fresh, 2)]);
    spoil(fresh[3]!, WIDTH + 9, Number.NaN);
    assert.equal(pool.write(2, 7, fresh, 1, 2, also), false);
    assert.deepEqual([1, 2, 3, 4].map(rowAt), [untouched, ZEROS, ZEROS, untouched]);
    assert.deepEqual([readRow(pool, 2, 7), readRow(pool, 2, 8)], [ZEROS, ZEROS]);
    pool.dispose();
  });

  test("writes keys of eight bits as columns of blocks, and checks their scales", () => {
    const small = resolveModelSpec({ vocabSize: 8, hiddenSize: 16, numLayers: 1, numHeads: 2, headDim: 8 });
    const bytes = new RowLayout(small, "int8");
    const pool = new RowPool(bytes, 10, new RowMemory());
    const [groups, width, rows] = [2, 8, 2 * KEY_BLOCK];
    const keys = Int8Array.from({ length: groups * width }, (_, i) => 3 * i - 20);
    const row = [keys, keys.map((x) => -x), Float32Array.of(0.5, 0.25), Float32Array.of(2, 4)].map(asWords);
    const parts = bytes.parts.map(({ words }) => {
      const array = new Int32Array(rows * words);
      return { words: array, bytes: new Uint8Array(array.buffer) };
    });
    const position = KEY_BLOCK + 5;
    assert.ok(pool.write(1, position, row, 0, 1, { parts, first: position, apart: rows }));
    const slots = new Int8Array(parts[0]!.words.buffer);
    for (let group = 0; group < groups; group++) {
      for (let channel = 0; channel < width; channel++) {
        const block = group * 2 + 1;
        assert.equal(slots[(block * width + channel) * KEY_BLOCK + 5], keys[group * width + channel]);
      }
    }
    assert.deepEqual(
      [0, 1].map((group) => new Float32Array(parts[3]!.words.buffer)[group * rows + position]),
      [2, 4],
    );
    row[2] = asWords(Float32Array.of(0.5, Number.NaN));
    assert.equal(pool.write(1, position, row, 0, 1, { parts, first: position, apart: rows }), false);
    assert.ok(parts.every(({ words }) => words.every((word) => word === 0)));
    pool.dispose();
  });
});
