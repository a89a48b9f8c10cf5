/** The agent `gym` in Sokoban, in the two forms of conversation that ROLL has for it: tool calls and tags. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf, environmentOf } from "@hone/agents";
import { type PlayedRollout, playAgent } from "@hone/agents/testing";
import "../../built-ins.ts";
import { drawRoom } from "./rooms/draw-room.ts";
import type { Move } from "./rooms/room.ts";
import { solveRoom } from "./rooms/solve-room.ts";

const SEED = 0;
const SOLUTION = solveRoom(drawRoom(SEED, { rows: 6, columns: 6, boxes: 1, searchDepth: 300 }))!;

function play(config: Record<string, unknown>, answers: readonly string[], settings: object = {}) {
  const environment = {
    definition: environmentOf("sokoban") ?? assert.fail("no environment"),
    config: { ...settings },
    seed: SEED,
  };
  return playAgent(agentOf("gym") ?? assert.fail("no agent"), { environment, config, answers, maxTurns: 10 });
}

const call = (direction: string, name = "move_player") =>
  `<tool_call>\n${JSON.stringify({ name, arguments: { direction } })}\n</tool_call>`;
const answer = (move: Move) => `<answer>${move}</answer>`;

function assertSolved({ result, turns, environmentReturn, environmentMetrics }: PlayedRollout): void {
  assert.equal(turns.length, SOLUTION.length);
  assert.deepEqual(
    turns.map(({ reward }) => reward),
    SOLUTION.map((_move, index) => (index === SOLUTION.length - 1 ? 10.9 : -0.1)),
  );
  assert.ok(Math.abs(environmentReturn - (11 - 0.1 * SOLUTION.length)) < 1e-9);
  assert.deepEqual(environmentMetrics, { success: 1, action_is_valid: 1, action_is_effective: 1 });
  assert.deepEqual(result, { isTruncated: false, metrics: { steps: SOLUTION.length, done: 1 } });
}

describe("the agent gym in Sokoban", () => {
  test("solves the room by tool calls, and sees each new state as the answer to its call", async () => {
    const played = await play(
      { actionFormat: "tool_call", toolCallFormat: "hermes" },
      SOLUTION.map((move) => call(move.toLowerCase())),
    );
    assertSolved(played);
    const [first = "", second = ""] = played.prompts;
    assert.match(first, /"name": ?"move_player"/);
    assert.match(first, /Use the move_player tool to move the player\.\nThe meaning of each symbol/);
    assert.match(first, /Here is the current state:\n#{6}\n/);
    assert.match(second, /<tool_response>\nCurrent state:\n#{6}\n/);
    assert.equal(played.samples.length, 1);
  });

  test("counts a call of another tool, or in no direction, as a step without a move", async () => {
    const { turns, environmentMetrics } = await play(
      { actionFormat: "tool_call", toolCallFormat: "hermes" },
      [call("up", "push"), call("north"), "I do not know"],
      { formatPenalty: -0.5, maxSteps: 3 },
    );
    assert.deepEqual(
      turns.map(({ reward }) => reward),
      [-0.6, -0.6, -0.6],
    );
    assert.deepEqual(environmentMetrics, { success: 0, action_is_valid: 0, action_is_effective: 0 });
  });

  test("solves the room by tags, in ROLL's conversation with the rules in the system message", async () => {
    const played = await play({ preset: "roll_native" }, SOLUTION.map(answer));
    assertSolved(played);
    const [first = ""] = played.prompts;
    const [system = "", user = ""] = first.split("<|im_start|>user\n");
    assert.match(system, /high reward in the game\.\n\nYou are solving the Sokoban puzzle\./);
    assert.match(system, /format is <answer>Right<\/answer>\.\nThe meaning of each symbol/);
    assert.match(user, /^Here is the current state:\n#{6}\n/);
    assert.match(user, /Your available actions are:\nUp, Down, Left, Right\n\. <\/system-reminder>/);
    assert.equal(played.samples.length, 1);
  });

  test("is cut off at the limit of the environment's steps", async () => {
    const { result, environmentReturn } = await play({ preset: "roll_native" }, [""], { maxSteps: 4 });
    assert.deepEqual(result, { isTruncated: true, metrics: { steps: 4, done: 0 } });
    assert.equal(environmentReturn, -0.4);
  });

  test("a template may show where the player, the box and the target are", async () => {
    const { prompts } = await play(
      {
        promptTemplate:
          "{neighbors} {player_row}{player_column} {box_row}{box_column} {target_row}{target_column}",
        historyTurns: 0,
      },
      SOLUTION.map(answer),
    );
    for (const prompt of prompts) assert.match(prompt, /[#_OX√]{4} [1-4]{2} [1-4]{2} [1-4]{2}<\|im_end\|>/);
  });
});
