/** Tests that sequences read what they have in common from one slot, and that their results have the same bits all the same. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Random } from "@hone/core";
import { initialiseWeights, PAGE_ROWS, quantizeWeights, resolveModelSpec } from "@hone/nn";
import { exactEightBitType } from "@hone/tensor";
import type { RunItem } from "../policy-runner.ts";
import { OnnxRunner } from "./onnx-runner.ts";
import { beginsWith, choosePrefix, MAX_MEMBERS, type Prefix } from "./shared-prefix.ts";

const pagesOf = (...pages: number[]) => Int32Array.from(pages);

describe("choosePrefix", () => {
  const none = new Map<Prefix, number>();
  const item = (start: number, ...pages: number[]) => ({ pages: pagesOf(...pages), start });

  test("takes the pages in common with the sequence that has most of them", () => {
    const others = [item(70, 1, 2, 9, 9, 9), item(70, 1, 2, 3, 8, 8), item(70, 7, 7, 7, 7, 7)];
    assert.deepEqual(choosePrefix(item(64, 1, 2, 3, 4), others, none), {
      pages: pagesOf(1, 2, 3),
      start: 48,
    });
  });

  test("leaves out pages that are not full in both", () => {
    const others = [item(40, 1, 2, 3, 0)];
    assert.deepEqual(choosePrefix(item(64, 1, 2, 3, 0), others, none), { pages: pagesOf(1, 2), start: 32 });
  });

  test("shares nothing where only a page is in common", () => {
    assert.equal(choosePrefix(item(64, 1, 2, 3, 4), [item(64, 1, 3, 2, 4)], none), undefined);
    assert.equal(choosePrefix(item(64, 1, 2, 3, 4), [], none), undefined);
  });

  test("joins a prefix that others read until it has enough members", () => {
    const known = { pages: pagesOf(1, 2), start: 32 };
    const others = [item(64, 1, 2, 5, 6)];
    const choose = (members: number) =>
      choosePrefix(item(64, 1, 2, 3, 4), others, new Map([[known, members]]));
    assert.equal(choose(MAX_MEMBERS - 1), known);
    const other = choose(MAX_MEMBERS);
    assert.notEqual(other, known);
    assert.deepEqual(other, known);
  });
});

test("beginsWith compares all pages of the beginning", () => {
  assert.ok(beginsWith(pagesOf(1, 2, 3), pagesOf(1, 2)));
  assert.ok(!beginsWith(pagesOf(1, 3, 3), pagesOf(1, 2)));
  assert.ok(!beginsWith(pagesOf(1), pagesOf(1, 2)));
});

for (const [heads, keyHeads] of [
  [6, 2],
  [3, 3],
] as const) {
  describe(`a runner in eight bits, ${heads} heads on ${keyHeads}`, () => {
    const MOST_PAGES = 12;
    /** A token whose embedding is not finite. */
    const POISON = 95;
    const spec = resolveModelSpec({
      family: "llama",
      vocabSize: 96,
      hiddenSize: 96,
      numLayers: 3,
      numHeads: heads,
      numKeyValueHeads: keyHeads,
      headDim: 16,
      initializerRange: 0.3,
      isTied: false,
      maxPositions: MOST_PAGES * PAGE_ROWS,
    });
    let together: OnnxRunner;
    let alone: OnnxRunner;
    const made: OnnxRunner[] = [];

    before(async () => {
      const eightBits = await exactEightBitType();
      const weights = await quantizeWeights(spec, initialiseWeights(spec, 3), eightBits);
      const embedding = weights["model.embed_tokens.weight"];
      assert.ok(embedding instanceof Float32Array);
      embedding.fill(Number.POSITIVE_INFINITY, POISON * spec.hiddenSize);
      const options = { maxCacheBytes: 2 ** 24, maxSequences: 64, intraOpThreads: 1, eightBits } as const;
      const create = () => OnnxRunner.create(spec, weights, { ...options, contextLayout: "slots" });
      together = await create();
      alone = await create();
      made.push(together, alone);
    });
    after(() => Promise.all(made.map((runner) => runner.dispose())));

    /** A sequence whose first pages are those of its group. */
    interface Subject {
      readonly tokenIds: Int32Array;
      pages: Int32Array;
      start: number;
    }

    let nextPage = 1;
    const random = new Random(4);
    const tokens = (count: number) => Array.from({ length: count }, () => random.nextInt(POISON));
    const newPages = (count: number) => Array.from({ length: count }, () => nextPage++);

    async function group(size: number, pages: number): Promise<Subject[]> {
      const [prompt, promptPages] = [tokens(pages * PAGE_ROWS), newPages(pages)];
      const subjects = Array.from({ length: size }, () => ({
        tokenIds: Int32Array.from([...prompt, ...tokens((MOST_PAGES - pages) * PAGE_ROWS)]),
        pages: Int32Array.from([...promptPages, ...newPages(MOST_PAGES - pages)]),
        start: prompt.length,
      }));
      const { tokenIds, pages: table } = subjects[0]!;
      for (const runner of pages > 0 ? made : [])
        await runner.run([{ tokenIds, pages: table, start: 0, count: prompt.length, wantsLogits: false }]);
      return subjects;
    }

    /** Runs the sequences together and one after the other. */
    async function step(subjects: readonly Subject[], count = 1, failing: number[] = []): Promise<void> {
      const items: RunItem[] = subjects.map((subject) => ({ ...subject, count, wantsLogits: true }));
      const { logits, broken } = await together.run(items);
      assert.deepEqual(broken, failing);
      const rows = Float32Array.from(logits!);
      for (const [index, item] of items.entries()) {
        const row = (await alone.run([item])).logits!;
        if (failing.includes(index)) continue;
        const at = index * spec.vocabSize;
        assert.deepEqual(rows.subarray(at, at + spec.vocabSize), row, `sequence ${index}, row ${item.start}`);
      }
      for (const subject of subjects) subject.start += count;
    }

    test("gives the bits of each sequence alone while groups come, grow and leave", async () => {
      nextPage = 1;
      const [a, b, lone] = [await group(8, 5), await group(3, 2), await group(1, 3)];
      for (let i = 0; i < 3; i++) await step([...a, ...b, ...lone]);
      // More than a slot of a prefix is read by, some of them late.
      const many = await group(11, 4);
      await step([...many.slice(0, 9), ...lone]);
      for (let i = 0; i < 20; i++) await step([...many, ...a.slice(5), ...b.slice(1)]);
      await step([a[6]!]);
      await step([...lone, a[0]!, ...b]);
    });

    test("fails a sequence alone whose numbers are not finite", async () => {
      nextPage = 1;
      const [pair, lone, poisoned] = [await group(2, 2), await group(2, 0), await group(2, 0)];
      for (const { tokenIds } of poisoned) tokenIds[2] = POISON;
      const alone = poisoned.slice(0, 1);
      for (let i = 0; i < 2; i++) await step([...alone, ...pair, ...lone]);
      await step([...alone, ...pair, ...lone], 1, [0]);
      for (let i = 0; i < 2; i++) await step([poisoned[1]!, ...lone]);
      await step([poisoned[1]!, ...lone], 1, [0]);
      await step([...lone, ...pair]);
    });

    test("reads the pages of a sequence that started over, and no longer those of its prefix", async () => {
      nextPage = 1;
      const all = await group(3, 3);
      await step(all);
      const restarted = all[2]!;
      restarted.pages = Int32Array.from(newPages(MOST_PAGES));
      const { tokenIds, pages, start } = restarted;
      for (const runner of made)
        await runner.run([{ tokenIds, pages, start: 0, count: start, wantsLogits: false }]);
      // The pages of the prefix have other rows now, and its slot belongs to another prefix. Only the third sequence still has its own.
      nextPage = 1;
      await step(await group(2, 3));
      await step([restarted]);
    });

    test("gives them for a turn of several tokens too, and for a sequence that goes on in another's slot", async () => {
      nextPage = 1;
      const turns = await group(4, 4);
      for (let i = 0; i < 5; i++) await step(turns);
      await step(turns, 7);
      // The next turn has page tables of its own, which begin with the same pages.
      const next = turns.map((turn) => ({ ...turn, pages: turn.pages.slice() }));
      await step(next, 3);
      for (let i = 0; i < 3; i++) await step(next);
    });
  });
}
