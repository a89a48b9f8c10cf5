import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Environment } from "@hone/agents";
import { boardSvg, CELL_SIZE } from "./board-svg.ts";
import { FrozenLake, frozenLakeConfigSchema } from "./frozen-lake/frozen-lake.ts";
import { SlowEnvironment } from "./slow-environment.ts";
import { Sokoban, sokobanConfigSchema } from "./sokoban/sokoban.ts";
import { roomOf } from "./sokoban/testing.ts";

/** The drawing of each cell, row by row, and the title. */
async function look(environment: Pick<Environment, "render">) {
  const frame = await environment.render?.();
  assert.ok(frame?.kind === "svg");
  const drawings = new Map(
    [...frame.svg.matchAll(/<g id="(cell-\d+)">(.*)<\/g>/g)].map(([, id, drawing]) => [id, drawing ?? ""]),
  );
  return {
    title: /<title>(.*)<\/title>/.exec(frame.svg)?.[1],
    cells: [...frame.svg.matchAll(/<use href="#(cell-\d+)"/g)].map(([, id]) => drawings.get(id) ?? ""),
  };
}

/** Cells that look the same get the same letter, in the order in which they first appear. */
function pattern(cells: readonly string[], columns: number): string[] {
  const kinds = [...new Set(cells)];
  const letters = cells.map((cell) => String.fromCharCode(97 + kinds.indexOf(cell)));
  return Array.from({ length: cells.length / columns }, (_, row) =>
    letters.slice(row * columns, (row + 1) * columns).join(""),
  );
}

describe("boardSvg()", () => {
  test("writes each drawing once, places it in the middle of its cells, and escapes the title", () => {
    const svg = boardSvg({
      title: "A < B & C",
      rows: 1,
      columns: 3,
      drawCell: (cell) => (cell === 1 ? "<circle/>" : "<rect/>"),
    });
    assert.match(svg, /<title>A &lt; B &amp; C<\/title>/);
    assert.deepEqual(svg.match(/<(rect|circle)\/>/g), ["<rect/>", "<circle/>"]);
    const half = CELL_SIZE / 2;
    assert.deepEqual(
      [...svg.matchAll(/<use href="#cell-(\d)" x="(\d+)" y="(\d+)"/g)].map((match) =>
        match.slice(1).map(Number),
      ),
      [
        [0, half, half],
        [1, half + CELL_SIZE, half],
        [0, half + 2 * CELL_SIZE, half],
      ],
    );
  });
});

describe("the picture of FrozenLake", () => {
  const lake = { size: 3, start: 0, goal: 8, holes: new Set([2]) };
  const begin = () => {
    const environment = new FrozenLake(frozenLakeConfigSchema.parse({ size: 3 }), {
      lakeOf: () => lake,
      slipsOf: () => ({ nextInt: () => 1 }),
    });
    environment.reset(1);
    return environment;
  };

  test("shows player, hole, goal and ice where they are, and says it in words", async () => {
    const { cells, title } = await look(begin());
    assert.deepEqual(pattern(cells, 3), ["abc", "bbb", "bbd"]);
    assert.equal(title, "Frozen lake: the player is in row 1, column 1, and the goal in row 3, column 3");
  });

  test("shows another player in a hole and at the goal", async () => {
    const drowned = begin();
    for (const move of ["Right", "Right"]) drowned.step(move);
    const arrived = begin();
    for (const move of ["Down", "Down", "Right", "Right"]) arrived.step(move);
    const [before, hole, goal] = await Promise.all([look(begin()), look(drowned), look(arrived)]);
    assert.deepEqual(pattern(hole.cells, 3), ["aab", "aaa", "aac"]);
    assert.ok(!before.cells.includes(hole.cells[2] ?? ""));
    assert.equal(hole.title, "Frozen lake: the player fell into the hole in row 1, column 3");
    assert.deepEqual(pattern(goal.cells, 3), ["aab", "aaa", "aac"]);
    assert.ok(!before.cells.includes(goal.cells[8] ?? ""));
    assert.equal(goal.title, "Frozen lake: the player is at the goal in row 3, column 3");
  });

  test("is passed on by an environment that is slowed down, and absent before the reset", async () => {
    const slow = new SlowEnvironment(begin(), () => 0);
    assert.deepEqual(await look(slow), await look(begin()));
    assert.equal(new FrozenLake(frozenLakeConfigSchema.parse({})).render(), undefined);
  });
});

describe("the picture of Sokoban", () => {
  test("shows every kind of cell with a drawing of its own, and counts the boxes on targets", async () => {
    const room = roomOf("#######", "#PX_OO#", "#__√__#", "#_X___#", "#######");
    const sokoban = new Sokoban(sokobanConfigSchema.parse({ size: [5, 7], boxes: 3 }), () => room);
    sokoban.reset(1);
    const first = await look(sokoban);
    assert.deepEqual(pattern(first.cells, 7), ["aaaaaaa", "abcdeea", "addfdda", "adcddda", "aaaaaaa"]);
    assert.equal(first.title, "Sokoban: 1 of 3 boxes are on a target");
    for (const move of ["Right", "Right"]) sokoban.step(move);
    const pushed = await look(sokoban);
    assert.deepEqual(pattern(pushed.cells, 7), ["aaaaaaa", "abbcdea", "abbdbba", "abfbbba", "aaaaaaa"]);
    assert.equal(pushed.title, "Sokoban: 2 of 3 boxes are on a target");
    sokoban.step("Right");
    const standing = await look(sokoban);
    assert.deepEqual(pattern(standing.cells, 7), ["aaaaaaa", "abbbcda", "abbdbba", "abebbba", "aaaaaaa"]);
    sokoban.step("Right");
    assert.equal((await look(sokoban)).title, "Sokoban: 2 of 3 boxes are on a target", "walls stop boxes");
  });

  test("marks a player who stands on a target", async () => {
    const room = roomOf("#####", "#POX#", "#___#", "#####");
    const sokoban = new Sokoban(sokobanConfigSchema.parse({ size: [4, 5] }), () => room);
    sokoban.reset(1);
    const before = await look(sokoban);
    sokoban.step("Right");
    const after = await look(sokoban);
    assert.deepEqual(pattern(after.cells, 5), ["aaaaa", "abcda", "abbba", "aaaaa"]);
    assert.ok(!before.cells.includes(after.cells[7] ?? ""));
  });
});
