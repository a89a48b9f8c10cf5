import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rollSokoban, roomOf } from "../testing.ts";
import { solveRoom } from "./solve-room.ts";

describe("solveRoom()", () => {
  test("finds the shortest solutions of ROLL's rooms", () => {
    const rooms = [...rollSokoban.rooms_6x6_1_box, ...rollSokoban.rooms_10x10_2_boxes];
    assert.equal(rooms.length, 40);
    for (const { room, shortest_solution } of rooms) {
      const solution = solveRoom(roomOf(...room));
      assert.equal(solution?.map((move) => move[0]).join(""), shortest_solution, room.join("\n"));
    }
  });

  test("walks around a box where it has to", () => {
    assert.deepEqual(solveRoom(roomOf("######", "#OXP_#", "#____#", "######")), ["Left"]);
    assert.deepEqual(solveRoom(roomOf("######", "#_PXO#", "#____#", "######")), ["Right"]);
    assert.deepEqual(solveRoom(roomOf("#####", "#_O_#", "#_X_#", "#P__#", "#####")), ["Right", "Up"]);
    assert.equal(solveRoom(roomOf("######", "#PX_O#", "#____#", "######"))?.length, 2);
    assert.equal(solveRoom(roomOf("######", "#_OXP#", "######"))?.length, 1);
  });

  test("has nothing to do in a solved room", () => {
    assert.deepEqual(solveRoom(roomOf("####", "#P√#", "####")), []);
  });

  test("finds that a box in a corner, or one that cannot be reached, has no solution", () => {
    assert.equal(solveRoom(roomOf("#####", "#X_O#", "#_P_#", "#####")), undefined);
    assert.equal(solveRoom(roomOf("######", "#P#XO#", "######")), undefined);
    assert.equal(solveRoom(roomOf("#######", "#PXX_O#", "#____O#", "#######")), undefined);
  });
});
