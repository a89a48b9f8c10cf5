import assert from "node:assert/strict";
import { test } from "node:test";
import { makeCalculator } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { agents } from "./agent.ts";

const row = { prompt: "Ann has 12 bags with 7 nuts each. How many nuts in all?" };
const tools = { calculator: makeCalculator() };
const configOf = (isWriterLearning: boolean) => ({
  tools: ["calculator"],
  roles: { reader: { learn: true }, writer: { learn: isWriterLearning } },
});

test("team reads, computes and writes; what the writer says is recorded and not trained", async () => {
  const played = await playAgent(agents.team, {
    row,
    config: configOf(false),
    tools,
    answers: ["12 * 7", "#### 84"],
  });
  assert.match(played.prompts[1] ?? "", /84/);
  assert.doesNotMatch(played.prompts[1] ?? "", /Ann/);
  assert.deepEqual(
    played.turns.map(({ info, responseText }) => [info?.role, responseText]),
    [
      ["reader", "12 * 7"],
      ["writer", "#### 84"],
    ],
  );
  assert.equal(played.samples.length, 1);
});

test("team trains both where both learn, each as a row of its own", async () => {
  const played = await playAgent(agents.team, {
    row,
    config: configOf(true),
    tools,
    answers: ["12 * 7", "#### 84"],
  });
  assert.equal(played.samples.length, 2);
});

test("team ends with the reader where its formula has no value", async () => {
  const played = await playAgent(agents.team, { row, config: configOf(false), tools, answers: ["nuts"] });
  assert.equal(played.turns.length, 1);
});
