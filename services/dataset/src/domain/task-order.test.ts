import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import type { Task } from "./task.ts";
import { mixedOrder, namedOrder, plainOrder } from "./task-order.ts";

/** A source whose tasks have its name and their number as id. */
const sourceOf = (name: string, size: number) =>
  plainOrder({
    size,
    read: (elements) =>
      Promise.resolve(
        elements.map((element): Task => ({ kind: "row", id: `${name}:${element}`, rowJson: "{}" })),
      ),
  });
const idsOf = (tasks: readonly Task[]) => tasks.map(({ id }) => id);
const stretch = { runSeed: 7, cursor: 0, count: 4_096, isShuffled: true };

describe("mixedOrder()", () => {
  test("takes from each part in proportion to its weight", async () => {
    const mix = mixedOrder([
      { weight: 3, order: sourceOf("a", 1_000) },
      { weight: 1, order: sourceOf("b", 10) },
    ]);
    const ids = idsOf(await mix.take(stretch));
    const share = ids.filter((id) => id.startsWith("a:")).length / ids.length;
    assert.ok(Math.abs(share - 0.75) < 0.002, `${share}`);
    // The rare part never stays away for long.
    const places = ids.flatMap((id, index) => (id.startsWith("b:") ? [index] : []));
    const longest = Math.max(...places.slice(1).map((place, index) => place - places[index]!));
    assert.ok(longest < 60, `${longest}`);
  });

  test("repeats each part on its own, with every task once in each pass", async () => {
    const mix = mixedOrder([
      { weight: 1, order: sourceOf("a", 100) },
      { weight: 1, order: sourceOf("b", 100) },
    ]);
    const ids = idsOf(await mix.take(stretch));
    for (const part of ["a:", "b:"]) {
      const own = ids.filter((id) => id.startsWith(part));
      assert.equal(new Set(own.slice(0, 100)).size, 100);
      assert.equal(new Set(own.slice(100, 200)).size, 100);
      assert.notDeepEqual(own.slice(0, 100), own.slice(100, 200));
    }
  });

  test("gives the same tasks however the range is divided into batches, and others for another seed", async () => {
    const parts = fc.array(
      fc.record({
        weight: fc.double({ min: 0.01, max: 9, noNaN: true }),
        size: fc.integer({ min: 1, max: 40 }),
      }),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        parts,
        fc.nat(5_000),
        fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        async (described, begin, counts, isShuffled) => {
          const mix = mixedOrder(
            described.map(({ weight, size }, index) => ({ weight, order: sourceOf(String(index), size) })),
          );
          const total = counts.reduce((sum, count) => sum + count, 0);
          const whole = await mix.take({ runSeed: 3, cursor: begin, count: total, isShuffled });
          const pieces: Task[] = [];
          for (const count of counts) {
            pieces.push(
              ...(await mix.take({ runSeed: 3, cursor: begin + pieces.length, count, isShuffled })),
            );
          }
          assert.deepEqual(idsOf(pieces), idsOf(whole));
        },
      ),
      fuzz(50),
    );
    const mix = mixedOrder([{ weight: 1, order: sourceOf("a", 50) }]);
    const [one, other] = [await mix.take(stretch), await mix.take({ ...stretch, runSeed: 8 })];
    assert.notDeepEqual(idsOf(one), idsOf(other));
  });

  test("gives each task once when it is not shuffled, with the tasks of each part spread evenly", async () => {
    const mix = mixedOrder([
      { weight: 5, order: sourceOf("a", 2) },
      { weight: 1, order: sourceOf("b", 4) },
    ]);
    assert.equal(mix.size, 6);
    const tasks = await mix.take({ runSeed: 0, cursor: 0, count: 8, isShuffled: false });
    assert.deepEqual(idsOf(tasks), ["b:0", "a:0", "b:1", "b:2", "a:1", "b:3", "b:0", "a:0"]);
  });

  test("gives every step exactly the tasks that the parts ask for", async () => {
    const mix = mixedOrder([
      { weight: 1, groups: 5, order: sourceOf("a", 100) },
      { weight: 1, groups: 3, order: sourceOf("b", 100) },
    ]);
    const orders = new Set<string>();
    for (let step = 0; step < 20; step++) {
      const ids = idsOf(await mix.take({ ...stretch, cursor: step * 8, count: 8 }));
      assert.equal(ids.filter((id) => id.startsWith("a:")).length, 5);
      orders.add(ids.map(([part]) => part).join(""));
    }
    assert.ok(orders.size > 5, "the places of the parts differ from step to step");
  });
});

describe("namedOrder()", () => {
  test("puts the name of its part into a task and its id", async () => {
    const order = namedOrder(sourceOf("rows", 2), "sums");
    const [task] = await order.take({ ...stretch, count: 1, isShuffled: false });
    assert.deepEqual(task, { kind: "row", id: "sums/rows:0", rowJson: "{}", part: "sums" });
  });
});
