import assert from "node:assert/strict";
import { test } from "node:test";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";
import { defineAgent } from "../definitions/agent.ts";
import { defineEnvironment } from "../definitions/environment.ts";
import { playAgent } from "../testing.ts";

const coin = defineEnvironment({
  configSchema: z.strictObject({}),
  create: () => ({
    reset: () => ({ observation: "Heads or tails?", info: {} }),
    step: (answer: string) => ({
      observation: "Over.",
      reward: 1,
      terminated: true,
      truncated: false,
      info: { said: answer },
    }),
    metrics: () => ({}),
  }),
});

const player = defineAgent({
  configSchema: z.strictObject({}),
  needsEnvironment: true,
  buildGraph: () => undefined,
  async run(_graph, { model, environment }) {
    assert.ok(environment !== undefined);
    const { observation } = await environment.reset();
    const answer = await model.withRole("player").invoke([new HumanMessage(observation)]);
    await environment.step(answer.text);
    return {};
  },
});

test("what an environment says of a turn stands beside what the call said of itself", async () => {
  const { turns } = await playAgent(player, { environment: { definition: coin }, answers: ["heads"] });
  assert.deepEqual(
    turns.map(({ info, reward }) => [info, reward]),
    [[{ role: "player", said: "heads" }, 1]],
  );
});
