import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cellAfter, drawLake, isSolvable, type Lake, MOVES } from "./lake.ts";

describe("drawLake()", () => {
  test("every map can be solved, and its start and goal differ and are not holes", () => {
    for (let seed = 0; seed < 2_000; seed++) {
      for (const [size, safe] of [
        [4, 0.8],
        [8, 0.6],
        [2, 0.5],
      ] as const) {
        const lake = drawLake(seed, size, safe);
        assert.ok(isSolvable(lake));
        assert.notEqual(lake.start, lake.goal);
        assert.ok(!lake.holes.has(lake.start) && !lake.holes.has(lake.goal));
        for (const cell of [...lake.holes, lake.start, lake.goal]) assert.ok(cell >= 0 && cell < size * size);
      }
    }
  });

  test("a seed always gives the same map, and different seeds give different maps", () => {
    assert.deepEqual(drawLake(5, 4, 0.8), drawLake(5, 4, 0.8));
    const maps = new Set(
      Array.from({ length: 500 }, (_, seed) =>
        JSON.stringify([
          ...drawLake(seed, 4, 0.8).holes,
          drawLake(seed, 4, 0.8).start,
          drawLake(seed, 4, 0.8).goal,
        ]),
      ),
    );
    assert.ok(maps.size > 480);
  });

  test("start and goal may be anywhere, and about one in five other cells is a hole", () => {
    const starts = new Array<number>(16).fill(0);
    const goals = new Array<number>(16).fill(0);
    let holes = 0;
    const count = 4_000;
    for (let seed = 0; seed < count; seed++) {
      const lake = drawLake(seed, 4, 0.8);
      starts[lake.start]!++;
      goals[lake.goal]!++;
      holes += lake.holes.size;
    }
    for (const times of [...starts, ...goals])
      assert.ok(times > count / 16 / 1.5 && times < (count / 16) * 1.5);
    // Somewhat below 0.2, as maps that cannot be solved are drawn again.
    const share = holes / (count * 14);
    assert.ok(share > 0.14 && share < 0.2, `${share}`);
  });
});

describe("isSolvable()", () => {
  test("a goal behind holes cannot be reached", () => {
    const lake: Lake = { size: 3, start: 0, goal: 8, holes: new Set([1, 4, 7]) };
    assert.equal(isSolvable(lake), false);
    assert.equal(isSolvable({ ...lake, holes: new Set([1, 4]) }), true);
  });
});

describe("cellAfter()", () => {
  test("moves by one cell and stops at the border", () => {
    const lake: Lake = { size: 3, start: 0, goal: 8, holes: new Set() };
    assert.deepEqual(
      MOVES.map((move) => cellAfter(lake, 4, move)),
      [3, 7, 5, 1],
    );
    assert.deepEqual(
      MOVES.map((move) => cellAfter(lake, 0, move)),
      [0, 3, 1, 0],
    );
    assert.deepEqual(
      MOVES.map((move) => cellAfter(lake, 8, move)),
      [7, 8, 8, 5],
    );
  });
});
