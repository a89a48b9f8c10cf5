import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Curriculum } from "./curriculum.ts";
import type { Task } from "./jobs.ts";

const CONFIG = { kind: "success", low: 0.1, high: 0.9, window: 1, chance: 0 } as const;
const NAMES = ["easy", "hard", "right", "new"];

const ask = async (cursor: number, count: number): Promise<Task[]> =>
  Array.from({ length: count }, (_, i) => ({
    id: NAMES[(cursor + i) % NAMES.length]!,
    environment: "",
    environmentSeed: 0n,
    environmentConfigJson: "",
    part: "",
    rowJson: "{}",
  }));

const visit = (taskId: string, success: number, nextCursor = 4) => ({
  step: 1,
  task: 0,
  taskId,
  success,
  nextCursor,
});
const namesOf = ({ tasks }: { tasks: readonly Task[] }) => tasks.map(({ id }) => id);

describe("Curriculum", () => {
  test("continues where the previous step stopped, and skips tasks that are too easy or too hard", async () => {
    const curriculum = new Curriculum([{ part: "", curriculum: CONFIG }], 1);
    const first = await curriculum.choose(0, 4, ask);
    assert.deepEqual([namesOf(first), first.cursors, first.nextCursor], [NAMES, [0, 1, 2, 3], 4]);
    curriculum.record([visit("easy", 1), visit("hard", 0), visit("right", 0.5)]);
    const second = await curriculum.choose(4, 3, ask);
    assert.deepEqual(namesOf(second), ["right", "new", "right"]);
    assert.deepEqual([second.cursors, second.nextCursor, second.numPassedOver], [[6, 7, 10], 11, 4]);
  });

  test("completes a step with rejected tasks when it has considered as many as it may", async () => {
    const curriculum = new Curriculum([{ part: "", curriculum: CONFIG }], 1);
    curriculum.record(NAMES.map((name) => visit(name, 1)));
    const chosen = await curriculum.choose(4, 2, ask);
    assert.deepEqual([namesOf(chosen), chosen.cursors], [NAMES.slice(0, 2), [4, 5]]);
    assert.equal(chosen.nextCursor, 4 + 2 * 16);
  });

  test("asks each part of a mix by itself, and takes every task of a part without one", async () => {
    const curriculum = new Curriculum([{ part: "lake", curriculum: CONFIG }], 7);
    const names = ["lake/easy", "rows/easy", "lake/right"];
    const askParts = async (cursor: number, count: number) =>
      (await ask(cursor, count)).map((task, i) => {
        const id = names[(cursor + i) % names.length]!;
        return { ...task, id, part: id.split("/")[0]! };
      });
    curriculum.record([visit("lake/easy", 1), visit("rows/easy", 1), visit("lake/right", 0.5)]);
    assert.deepEqual(namesOf(await curriculum.choose(0, 4, askParts)), [
      "rows/easy",
      "lake/right",
      "rows/easy",
      "lake/right",
    ]);
  });

  test("chooses the same tasks again from the stored visits", async () => {
    const config = { ...CONFIG, chance: 0.5 };
    const visits = NAMES.map((name, i) => visit(name, i % 2, 40));
    const configs = [{ part: "", curriculum: config }];
    const [one, other] = [new Curriculum(configs, 7), new Curriculum(configs, 7)];
    one.record(visits.slice(0, 1));
    one.record(visits.slice(1));
    other.record(visits);
    assert.deepEqual(await one.choose(40, 8, ask), await other.choose(40, 8, ask));
  });
});
