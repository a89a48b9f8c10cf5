import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SYMBOL_PRESETS } from "../symbols.ts";
import { roomOf } from "../testing.ts";
import { Ground, moveNamed, roomOfRows, targetsOf } from "./room.ts";

describe("roomOfRows()", () => {
  test("reads walls, floor, targets, boxes and the player, also where two of them share a cell", () => {
    const room = roomOf("#######", "#S_√X_#", "#######");
    assert.deepEqual([room.rows, room.columns, room.player, room.boxes], [3, 7, 8, [10, 11]]);
    assert.deepEqual(targetsOf(room), [8, 10]);
    const { wall, floor, target } = Ground;
    assert.deepEqual([...room.ground.slice(7, 14)], [wall, target, floor, target, floor, floor, wall]);
  });

  test("reads a room in other symbols", () => {
    const rows = ["WWWWW", "WABGW", "WWWWW"];
    assert.deepEqual(
      roomOfRows(rows, SYMBOL_PRESETS.different_grid_vocab),
      roomOf("#####", "#PXO#", "#####"),
    );
  });

  for (const [what, rows, reason] of [
    ["rows of different lengths", ["#####", "#PXO#", "####"], /rows of the same length/],
    ["an unknown symbol", ["#####", "#P?O#", "#####"], /only the symbols # _ O √ X P S/],
    ["a hole in the border", ["#####", "#PXO_", "#####"], /walls all along the border/],
    ["no player", ["#####", "#_XO#", "#####"], /exactly one player/],
    ["two players", ["######", "#PXOP#", "######"], /exactly one player/],
    ["more targets than boxes", ["######", "#PXOO#", "######"], /as many targets as boxes/],
    ["no box", ["#####", "#P__#", "#####"], /at least one box/],
    ["no rows", [], /exactly one player/],
  ] as const) {
    test(`refuses ${what}`, () => {
      assert.throws(() => roomOf(...rows), reason);
    });
  }
});

test("moveNamed() ignores case and white space around the name", () => {
  assert.equal(moveNamed(" uP\n"), "Up");
  assert.equal(moveNamed("RIGHT"), "Right");
  for (const text of ["", "Up Down", "1", "Upward", "constructor"]) assert.equal(moveNamed(text), undefined);
});
