import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TerminalError } from "@hone/core";
import { drawRoom, type RoomOptions } from "./draw-room.ts";
import { Ground, type Room, targetsOf } from "./room.ts";
import { solveRoom } from "./solve-room.ts";

const SIMPLE: RoomOptions = { rows: 6, columns: 6, boxes: 1, searchDepth: 300 };
const LARGER: RoomOptions = { rows: 10, columns: 10, boxes: 2, searchDepth: 10 };

const roomsOf = (count: number, options: RoomOptions) =>
  Array.from({ length: count }, (_, seed) => drawRoom(seed, options));

const cellsOf = ({ ground, boxes, player }: Room) => [...ground, ...boxes, player].join(",");

/** Asserts what holds for every room, and returns the length of its shortest solution. */
function checkedLength(room: Room, { rows, columns, boxes }: RoomOptions): number {
  assert.deepEqual([room.rows, room.columns, room.ground.length], [rows, columns, rows * columns]);
  for (const [cell, kind] of room.ground.entries()) {
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    if (row === 0 || row === rows - 1 || column === 0 || column === columns - 1) {
      assert.equal(kind, Ground.wall);
    }
  }
  assert.equal(targetsOf(room).length, boxes);
  assert.equal(new Set([...room.boxes, room.player]).size, boxes + 1);
  for (const box of room.boxes) assert.equal(room.ground[box], Ground.floor);
  assert.notEqual(room.ground[room.player], Ground.wall);
  const solution = solveRoom(room) ?? assert.fail("a room has no solution");
  return solution.length;
}

describe("drawRoom()", () => {
  test("every room has a solution, and no box is on a target", () => {
    for (const room of roomsOf(200, SIMPLE)) assert.ok(checkedLength(room, SIMPLE) > 0);
    for (const room of roomsOf(30, LARGER)) assert.ok(checkedLength(room, LARGER) > 0);
    const wide = { rows: 5, columns: 9, boxes: 3, searchDepth: 40 };
    for (const room of roomsOf(10, wide)) assert.ok(checkedLength(room, wide) > 0);
    const flat = { rows: 3, columns: 5, boxes: 1, searchDepth: 300 };
    for (const room of roomsOf(10, flat)) assert.equal(checkedLength(room, flat), 1);
  });

  test("rooms are as hard and as large as those of ROLL's generator", () => {
    // 600 and 200 rooms of it have solutions of 4.05 and 6.26 moves and 10.5 and 25.2 cells of floor on average.
    for (const [options, length, floor] of [
      [SIMPLE, 4.05, 10.5],
      [LARGER, 6.26, 25.2],
    ] as const) {
      const rooms = roomsOf(500, options);
      const lengths = rooms.map((room) => solveRoom(room)!.length);
      const floors = rooms.map(({ ground }) => ground.filter((kind) => kind !== Ground.wall).length);
      assert.ok(Math.abs(mean(lengths) - length) < 0.4, `${mean(lengths)}`);
      assert.ok(Math.abs(mean(floors) - floor) < 1.5, `${mean(floors)}`);
    }
  });

  test("the player may stand away from the boxes and on a target", () => {
    const rooms = roomsOf(300, SIMPLE);
    const away = rooms.filter(({ boxes: [box], player, columns }) => {
      return ![1, columns].includes(Math.abs(box! - player));
    });
    const onTarget = rooms.filter(({ ground, player }) => ground[player] === Ground.target);
    assert.ok(away.length > 60 && away.length < 240, `${away.length}`);
    assert.ok(onTarget.length > 0, `${onTarget.length}`);
  });

  test("different seeds give different rooms", () => {
    assert.ok(new Set(roomsOf(300, SIMPLE).map(cellsOf)).size > 280);
    assert.equal(new Set(roomsOf(100, LARGER).map(cellsOf)).size, 100);
  });

  test("is repeatable, also after other rooms, and takes milliseconds", () => {
    const first = roomsOf(20, LARGER).map(cellsOf);
    const begin = performance.now();
    assert.deepEqual(roomsOf(20, LARGER).map(cellsOf), first);
    // It takes about 2 ms for all of them.
    assert.ok(performance.now() - begin < 1_000);
  });

  test("says what to change when there is no such room", () => {
    for (const options of [
      { ...SIMPLE, rows: 3, columns: 3 },
      { ...SIMPLE, rows: 4, columns: 4 },
      { ...SIMPLE, boxes: 4, searchDepth: 5 },
    ]) {
      assert.throws(() => drawRoom(1, options), {
        constructor: TerminalError,
        code: "ROOM_NOT_FOUND",
        message: /larger size, fewer boxes or a greater searchDepth$/,
      });
    }
  });
});

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
