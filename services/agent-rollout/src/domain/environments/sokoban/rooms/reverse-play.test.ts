import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rollSokoban, roomOf } from "../testing.ts";
import { playReverse } from "./reverse-play.ts";

describe("playReverse()", () => {
  test("chooses the state that gym_sokoban's search chooses, after as many states", () => {
    let numFailures = 0;
    for (const { search_depth, states, solved, pulled, displacement } of rollSokoban.reverse_play) {
      const { best, numStates } = playReverse(roomOf(...solved), search_depth);
      assert.equal(numStates, states);
      if (pulled === null) {
        numFailures++;
        assert.equal(best, undefined, solved.join("\n"));
        continue;
      }
      const { boxes, player } = roomOf(...pulled);
      const found = best && { ...best, boxes: best.boxes.toSorted((a, b) => a - b) };
      assert.deepEqual(found, { boxes, player, displacement }, solved.join("\n"));
    }
    assert.ok(numFailures > 0 && numFailures < rollSokoban.reverse_play.length / 2);
  });

  test("pulls a box as far as the search is deep", () => {
    const room = roomOf("#########", "#√P_____#", "#########");
    const pulledTo = (searchDepth: number) => playReverse(room, searchDepth).best?.boxes[0];
    assert.deepEqual([2, 3, 4, 5, 300].map(pulledTo), [undefined, 11, 12, 13, 15]);
  });

  test("finds nothing where a box has no space or the player cannot come to it", () => {
    assert.equal(playReverse(roomOf("####", "#√P#", "####"), 300).best, undefined);
    assert.equal(playReverse(roomOf("#######", "#√_#_P#", "#######"), 300).best, undefined);
  });

  test("does not count a state in which the player hides a target", () => {
    // The last pull would leave the player on the other box's target.
    const { best } = playReverse(roomOf("########", "#√_P√__#", "########"), 300);
    assert.equal(best, undefined);
  });
});
