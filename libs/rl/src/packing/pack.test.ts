import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import type { MaskedTokens } from "../rollout.ts";
import { packSamples } from "./pack.ts";

/** `abc|de` : the part after the bar is trained; letters are token ids. */
function sample(text: string): MaskedTokens {
  const [prompt, answer] = text.split("|") as [string, string];
  const tokenIds = [...(prompt + answer)].map((letter) => letter.charCodeAt(0) - 96);
  return { tokenIds, lossMask: tokenIds.map((_, i) => (i < prompt.length ? 0 : 1)) };
}

const letters = (ids: Iterable<number>) =>
  [...ids].map((id) => (id === 0 ? "." : String.fromCharCode(id + 96))).join("");

describe("packSamples()", () => {
  test("computes a shared prefix once and leaves the last trained token out", () => {
    const packed = packSamples([sample("abc|de"), sample("abc|fg")], { maxRowTokens: 16 });
    assert.equal(letters(packed.tokenIds), "abcdf");
    assert.deepEqual([...packed.positionIds], [0, 1, 2, 3, 3]);
    assert.deepEqual([...packed.visibleEnd], [5, 5, 5, 4, 5]);
    assert.deepEqual([...packed.entryPosition], [2, 3, 2, 4]);
    assert.equal(letters(packed.entryTarget), "defg");
    assert.equal(packed.sampleTokenCount, 8);
    assert.equal(packed.packedTokenCount, 5);
  });

  test("shares sampled tokens too, and a sample that is another's prefix costs nothing", () => {
    const packed = packSamples([sample("ab|cde"), sample("ab|cd"), sample("ab|cx")], { maxRowTokens: 16 });
    assert.equal(letters(packed.tokenIds), "abcd");
    assert.deepEqual([...packed.entryPosition], [1, 2, 3, 1, 2, 1, 2]);
    assert.equal(letters(packed.entryTarget), "cdecdcx");
  });

  test("repeats the prefix in the next row when a branch does not fit", () => {
    const packed = packSamples([sample("abc|def"), sample("abc|ghi"), sample("abc|jkl")], {
      maxRowTokens: 7,
    });
    assert.equal(packed.rowCount, 2);
    assert.equal(letters(packed.tokenIds), "abcdeghabcjk..".slice(0, 14));
    assert.deepEqual([...packed.visibleEnd.subarray(7)], [5, 5, 5, 5, 5, 6, 7]);
  });

  test("a sample longer than a row makes the rows as long as itself", () => {
    const packed = packSamples([sample("abcdefgh|ij")], { maxRowTokens: 4 });
    assert.equal(packed.rowTokens, 9);
  });

  test("samples without a trained token are left out, and a batch of such is refused", () => {
    const packed = packSamples([sample("abc|"), sample("ab|c")], { maxRowTokens: 8 });
    assert.equal(packed.packedTokenCount, 2);
    assert.throws(
      () => packSamples([sample("abc|")], { maxRowTokens: 8 }),
      /none of the 1 samples to pack has a trained token/,
    );
  });

  test("what an entry sees is exactly its sample's prefix, for random trees", () => {
    const random = new Random(1);
    const samples = Array.from({ length: 60 }, (): MaskedTokens => {
      const tokenIds = Array.from({ length: 3 + random.nextInt(9) }, () => 1 + random.nextInt(2));
      return { tokenIds, lossMask: tokenIds.map((_, i) => (i === 0 ? 0 : random.nextInt(2))) };
    });
    const packed = packSamples(samples, { maxRowTokens: 24 });
    let entry = 0;
    for (const { tokenIds, lossMask } of samples) {
      for (let i = 1; i < tokenIds.length; i++) {
        if (lossMask[i] !== 1) continue;
        const at = packed.entryPosition[entry]!;
        const start = at - (at % packed.rowTokens);
        const seen = Array.from({ length: at - start + 1 }, (_, j) => j).filter(
          (j) => at - start < packed.visibleEnd[start + j]!,
        );
        assert.deepEqual(
          seen.map((j) => packed.tokenIds[start + j]),
          Array.from(tokenIds).slice(0, i),
        );
        assert.deepEqual(
          seen.map((j) => packed.positionIds[start + j]),
          seen.map((_, depth) => depth),
        );
        assert.equal(packed.entryTarget[entry], tokenIds[i]);
        entry++;
      }
    }
    assert.equal(entry, packed.entryTarget.length);
    assert.ok(packed.packedTokenCount < packed.sampleTokenCount);
  });
});
