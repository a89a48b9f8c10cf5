import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BatchWriter } from "./batch-writer.ts";

/** A store whose writes end when the test ends them. */
function heldStore() {
  const writes: { items: readonly number[]; end: (error?: unknown) => void }[] = [];
  const write = (items: readonly number[]) =>
    new Promise<void>((resolve, reject) => {
      writes.push({ items, end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  return { writes, write };
}

const options = { maxItems: 3, maxDelayMs: 5, isItemsFault: () => false };

describe("BatchWriter", () => {
  test("resolves an item only after its write has ended, and collects items in the meantime", async () => {
    const { writes, write } = heldStore();
    const writer = new BatchWriter({ ...options, write });
    const done: number[] = [];
    const adds = [1, 2, 3, 4, 5, 6, 7].map((item) => writer.add(item).then(() => done.push(item)));
    assert.deepEqual(
      writes.map(({ items }) => items),
      [[1, 2, 3]],
    );
    assert.equal(writer.waiting, 4);
    writes[0]!.end();
    await Promise.all(adds.slice(0, 3));
    assert.deepEqual(done, [1, 2, 3]);
    assert.deepEqual(writes[1]!.items, [4, 5, 6]);
    writes[1]!.end();
    await Promise.all(adds.slice(3, 6));
    const flushed = writer.flush();
    assert.deepEqual(writes[2]!.items, [7]);
    writes[2]!.end();
    await flushed;
    assert.equal(done.length, 7);
  });

  test("writes a batch that is not full after the delay", async () => {
    const written: number[] = [];
    const writer = new BatchWriter<number>({
      ...options,
      write: async (items) => {
        written.push(...items);
      },
    });
    await writer.add(1);
    assert.deepEqual(written, [1]);
  });

  test("rejects every item of a batch when the database does not answer", async () => {
    const away = new Error("away");
    const writer = new BatchWriter<number>({ ...options, write: () => Promise.reject(away) });
    const outcomes = await Promise.allSettled([1, 2, 3].map((item) => writer.add(item)));
    assert.ok(outcomes.every((outcome) => outcome.status === "rejected" && outcome.reason === away));
  });

  test("rejects only the one item of a batch that cannot be written", async () => {
    const bad = new Error("bad");
    const stored: number[] = [];
    const writer = new BatchWriter<number>({
      ...options,
      isItemsFault: (error) => error === bad,
      write: async (items) => {
        if (items.includes(2)) throw bad;
        stored.push(...items);
      },
    });
    const outcomes = await Promise.allSettled([1, 2, 3].map((item) => writer.add(item)));
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    assert.deepEqual(stored, [1, 3]);
  });
});
