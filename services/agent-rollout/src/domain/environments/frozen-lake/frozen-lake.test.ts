import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FrozenLake, type FrozenLakeConfig, frozenLakeConfigSchema } from "./frozen-lake.ts";
import { cellAfter, drawLake, type Lake, MOVES, type Move } from "./lake.ts";

const lakeWith = (config: Partial<FrozenLakeConfig> = {}) =>
  new FrozenLake(frozenLakeConfigSchema.parse(config));

/** The shortest way over ice, by breadth-first search. */
function wayTo(lake: Lake, isTarget: (cell: number) => boolean): Move[] | undefined {
  const ways = new Map<number, Move[]>([[lake.start, []]]);
  for (const [cell, way] of ways) {
    if (isTarget(cell)) return way;
    if (lake.holes.has(cell) || cell === lake.goal) continue;
    for (const move of MOVES) {
      const next = cellAfter(lake, cell, move);
      if (!ways.has(next)) ways.set(next, [...way, move]);
    }
  }
  return undefined;
}

/** The first seed whose map fulfils a condition. */
function seedWhere(holds: (lake: Lake) => boolean): number {
  for (let seed = 0; ; seed++) if (holds(drawLake(seed, 4, 0.8))) return seed;
}

describe("FrozenLake", () => {
  test("shows the map as symbols, with rows joined by newlines", () => {
    const seed = seedWhere((lake) => lake.holes.size > 1);
    const lake = drawLake(seed, 4, 0.8);
    const { observation, info } = lakeWith().reset(seed);
    const cells = [...observation.replaceAll("\n", "")];
    assert.deepEqual(
      observation.split("\n").map((row) => row.length),
      [4, 4, 4, 4],
    );
    for (const [cell, symbol] of cells.entries()) {
      const expected =
        cell === lake.start ? "P" : cell === lake.goal ? "G" : lake.holes.has(cell) ? "O" : "_";
      assert.equal(symbol, expected);
    }
    const { neighbors, ...places } = info;
    assert.equal(String(neighbors).length, 4);
    assert.deepEqual(places, {
      player_row: Math.floor(lake.start / 4),
      player_column: lake.start % 4,
      goal_row: Math.floor(lake.goal / 4),
      goal_column: lake.goal % 4,
    });
  });

  test("gives the neighbouring cells to the left, below, to the right and above, or the border", () => {
    const seed = seedWhere(({ start, holes }) => start === 0 && holes.has(1));
    const lake = drawLake(seed, 4, 0.8);
    const below = lake.goal === 4 ? "G" : lake.holes.has(4) ? "O" : "_";
    assert.equal(lakeWith().reset(seed).info.neighbors, `-${below}O-`);
  });

  test("the goal ends the episode with reward 1, and earlier steps give 0", () => {
    for (let seed = 0; seed < 100; seed++) {
      const lake = drawLake(seed, 4, 0.8);
      const way = wayTo(lake, (cell) => cell === lake.goal)!;
      const environment = lakeWith({ maxSteps: 100 });
      environment.reset(seed);
      for (const [index, move] of way.entries()) {
        const step = environment.step(move);
        const isLast = index === way.length - 1;
        assert.equal(step.reward, isLast ? 1 : 0);
        assert.equal(step.terminated, isLast);
        assert.equal(step.truncated, false);
        assert.equal(step.observation.includes("√"), isLast);
      }
      assert.deepEqual(environment.metrics(), { success: 1, action_is_valid: 1, action_is_effective: 1 });
    }
  });

  test("a hole ends the episode without a reward", () => {
    const seed = seedWhere((lake) => wayTo(lake, (cell) => lake.holes.has(cell)) !== undefined);
    const lake = drawLake(seed, 4, 0.8);
    const environment = lakeWith();
    environment.reset(seed);
    const last = wayTo(lake, (cell) => lake.holes.has(cell))!
      .map((move) => environment.step(move))
      .at(-1)!;
    assert.equal(last.reward, 0);
    assert.equal(last.terminated, true);
    assert.ok(last.observation.includes("X") && !last.observation.includes("P"));
    assert.equal(environment.metrics().success, 0);
  });

  test("an invalid answer moves nothing, gives the format penalty and counts as a step", () => {
    const environment = lakeWith({ formatPenalty: -0.01, maxSteps: 2 });
    const { observation } = environment.reset(3);
    const first = environment.step("to the right, please");
    assert.equal(first.observation, observation);
    assert.equal(first.reward, -0.01);
    assert.deepEqual([first.terminated, first.truncated], [false, false]);
    assert.equal(first.info.action, null);
    assert.equal(first.info.action_is_valid, false);
    assert.equal(environment.step("").truncated, true);
    assert.deepEqual(environment.metrics(), { success: 0, action_is_valid: 0, action_is_effective: 0 });
  });

  test("the format penalty is 0 unless it is set", () => {
    const environment = lakeWith();
    environment.reset(3);
    assert.equal(environment.step("?").reward, 0);
  });

  test("a move against the border is valid but not effective", () => {
    const seed = seedWhere((lake) => lake.start === 0);
    const environment = lakeWith();
    environment.reset(seed);
    const { info, terminated } = environment.step("Up");
    assert.equal(info.action_is_valid, true);
    assert.equal(info.action_is_effective, false);
    assert.equal(terminated, false);
    environment.step("nothing");
    assert.deepEqual(environment.metrics(), { success: 0, action_is_valid: 0.5, action_is_effective: 0 });
  });

  test("is truncated after the last allowed step, unless that step ends the episode", () => {
    const seed = seedWhere((lake) => wayTo(lake, (cell) => cell === lake.goal)!.length === 2);
    const lake = drawLake(seed, 4, 0.8);
    const way = wayTo(lake, (cell) => cell === lake.goal)!;
    const environment = lakeWith({ maxSteps: 2 });
    environment.reset(seed);
    environment.step(way[0]!);
    const last = environment.step(way[1]!);
    assert.deepEqual([last.reward, last.terminated, last.truncated], [1, true, false]);
    environment.reset(seed);
    environment.step("?");
    assert.equal(environment.step("?").truncated, true);
  });

  test("slips to either side with a chance of one in three each, never backwards, and repeatably by its seed", () => {
    const seed = seedWhere((lake) => lake.start === 5 && [1, 4, 6, 9].every((cell) => !lake.holes.has(cell)));
    const ends = new Map<number, number>();
    const config = { slippery: true, maxSteps: 1 };
    // The seed determines the slips, so different maps are needed for different slips.
    for (let other = 0, found = 0; found < 3_000; other++) {
      const lake = drawLake(other, 4, 1);
      if (lake.start !== 5) continue;
      found++;
      const environment = lakeWith({ ...config, safeProbability: 1 });
      environment.reset(other);
      const { info } = environment.step("Right");
      const cell = Number(info.player_row) * 4 + Number(info.player_column);
      ends.set(cell, (ends.get(cell) ?? 0) + 1);
    }
    assert.deepEqual(
      [...ends.keys()].toSorted((a, b) => a - b),
      [1, 6, 9],
    );
    for (const count of ends.values()) assert.ok(Math.abs(count - 1_000) < 120, `${count}`);
    const play = () => {
      const environment = lakeWith({ slippery: true });
      environment.reset(seed);
      return environment.step("Right").observation;
    };
    assert.equal(play(), play());
  });

  test("a move goes where it was meant to when the ice is not slippery", () => {
    const environment = lakeWith({ safeProbability: 1 });
    const seed = seedWhere((lake) => lake.start === 5);
    for (let round = 0; round < 50; round++) {
      environment.reset(seed);
      assert.equal(environment.step("Right").info.action_is_effective, true);
    }
  });

  test("legal answers are the moves that stay on the board, holes included", () => {
    const seed = seedWhere((lake) => lake.start === 0 && lake.holes.has(1));
    const environment = lakeWith();
    environment.reset(seed);
    assert.deepEqual(environment.legalActions(), ["Down", "Right"]);
  });

  test("refuses a step before a reset or after the end", () => {
    const environment = lakeWith({ maxSteps: 1 });
    assert.throws(() => environment.step("Up"), /needs a reset before its first step/);
    environment.reset(1);
    environment.step("?");
    assert.throws(() => environment.step("Up"), /the episode is over/);
  });

  test("its configuration refuses unknown keys and numbers out of range", () => {
    for (const wrong of [
      { slipery: true },
      { size: 1 },
      { safeProbability: 0 },
      { formatPenalty: 1 },
      { maxSteps: 0 },
    ]) {
      assert.equal(frozenLakeConfigSchema.safeParse(wrong).success, false);
    }
  });
});
