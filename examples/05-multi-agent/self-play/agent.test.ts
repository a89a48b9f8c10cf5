import assert from "node:assert/strict";
import { test } from "node:test";
import { playAgent } from "@hone/agents/testing";
import { agents } from "./agent.ts";

const play = (answers: readonly string[], pile = 5) =>
  playAgent(agents.nim, {
    row: { prompt: String(pile), pile, players: ["learner", "rival"] },
    config: { success: "learner" },
    answers,
  });

test("nim is won by the role that takes the last counter, and each move is a conversation of its own", async () => {
  const { result, prompts, turns } = await play(["1", "2", "2"]);
  assert.deepEqual(result.roleRewards, { learner: 1, rival: 0 });
  assert.equal(result.metrics?.success, 1);
  assert.deepEqual(
    turns.map(({ info }) => info?.role),
    ["learner", "rival", "learner"],
  );
  for (const [index, left] of ["5", "4", "2"].entries())
    assert.match(prompts[index]!, new RegExp(`\\b${left}\\b`));
});

test("nim is lost by an answer that is no legal move", async () => {
  for (const answer of ["7", "four", "", "3"]) {
    const { result } = await play(["3", answer]);
    assert.deepEqual(result.roleRewards, { learner: 1, rival: 0 }, answer);
    assert.equal(result.metrics?.illegal, 1);
  }
});

test("nim counts the moves that leave a multiple of four, where there is one", async () => {
  const { result } = await play(["1", "3", "1"]);
  assert.equal(result.metrics?.best_learner, 1);
  assert.equal(result.metrics?.best_rival, undefined, "from four every move loses");
});
