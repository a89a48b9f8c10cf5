import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineAgent, defineEnvironment, type Environment } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { z } from "zod";
import { FrozenLake, frozenLakeConfigSchema } from "../../environments/frozen-lake/frozen-lake.ts";
import { gymAgent } from "./gym-agent.ts";

const gym = defineAgent(gymAgent);
const lake = defineEnvironment({
  configSchema: frozenLakeConfigSchema,
  create: (config) => new FrozenLake(config),
});
const move = (direction: string) =>
  `<tool_call>\n${JSON.stringify({ name: "move_player", arguments: { direction } })}\n</tool_call>`;
const inLake = (options: {
  readonly config: object;
  readonly answers: readonly string[];
  readonly lake?: object;
  readonly maxTurns?: number;
}) =>
  playAgent(gym, {
    environment: { definition: lake, config: { ...options.lake }, seed: 5 },
    config: { ...options.config },
    answers: options.answers,
    maxTurns: options.maxTurns ?? 3,
  });

/** Counts from 1, and speaks in messages. */
class Counter implements Environment {
  #next = 1;

  reset() {
    const messages = [
      { role: "system", content: "You count." },
      { role: "user", content: "Begin with 1." },
    ] as const;
    return { observation: "Begin with 1.", info: {}, messages };
  }

  step(action: string) {
    const isRight = action === String(this.#next++);
    const content = isRight ? "Go on." : `"${action}" is wrong.`;
    const messages = [{ role: "user", content }] as const;
    return {
      observation: content,
      info: {},
      messages,
      reward: isRight ? 1 : 0,
      terminated: !isRight,
      truncated: false,
    };
  }

  metrics() {
    return { counted: this.#next - 1 };
  }
}

describe("a conversation of gym", () => {
  test("by tool calls shows observations as the calls' answers, and plays the first call of a turn", async () => {
    const { prompts, turns, environmentMetrics } = await inLake({
      config: { actionFormat: "tool_call" },
      answers: [move("up"), `${move("down")}\n${move("left")}`, "I stay."],
    });
    assert.match(prompts[0]!, /"name": "move_player"/);
    assert.match(prompts[0]!, /Use the move_player tool to move the player/);
    assert.deepEqual(
      turns.map(({ info }) => info?.action),
      ["Up", "Down", null],
    );
    assert.match(prompts[1]!, /<tool_response>\nCurrent state:\n/);
    assert.match(prompts[2]!, /Only the first call of a turn is carried out\./);
    assert.equal(environmentMetrics.action_is_valid, 2 / 3);
  });

  test("by tool calls begins with a prompt where the call before it is not shown", async () => {
    const { prompts } = await inLake({
      config: { actionFormat: "tool_call", historyTurns: 0 },
      answers: [move("up"), move("down")],
    });
    assert.doesNotMatch(prompts[1]!, /<tool_response>/);
    assert.match(prompts[1]!, /<\|im_start\|>user\nCurrent state:\n/);
  });

  test("of ROLL's native kind has the instruction in the system message", async () => {
    const { prompts } = await inLake({ config: { preset: "roll_native" }, answers: ["<answer>Up</answer>"] });
    assert.match(prompts[0]!, /high reward in the game\.\n\nYou are solving the FrozenLake puzzle/);
    assert.match(prompts[0]!, /user\nHere is the current state:\n/);
    assert.match(
      prompts[1]!,
      /user\nCurrent state:\n[\s\S]*Your available actions are:\nLeft, Down, Right, Up/,
    );
  });

  test("in AgentJet's lake takes the last block, and says when the player did not move", async () => {
    const { prompts, turns } = await inLake({
      lake: { preset: "agentjet" },
      config: {},
      answers: ["Let me think.", "I go ```up``` or rather ```Down```"],
      maxTurns: 2,
    });
    assert.match(prompts[0]!, /Current Observation \(1\): \n(?: [P_OG] \t){4}\n/);
    assert.doesNotMatch(prompts[0]!, /Your last response is invalid/);
    assert.match(
      prompts[1]!,
      /Your last response is invalid[\s\S]*The maximum number of steps remaining is 1\./,
    );
    assert.deepEqual(
      turns.map(({ info }) => info?.action),
      [null, "Down"],
    );
  });

  test("with an environment that speaks in messages shows them as they are", async () => {
    const definition = defineEnvironment({ configSchema: z.strictObject({}), create: () => new Counter() });
    const { prompts, environmentReturn, environmentMetrics, result } = await playAgent(gym, {
      environment: { definition },
      config: { actionFormat: "text" },
      answers: ["1", "2", "four"],
    });
    assert.equal(
      prompts[0],
      "<|im_start|>system\nYou count.<|im_end|>\n<|im_start|>user\nBegin with 1.<|im_end|>\n<|im_start|>assistant\n",
    );
    assert.ok(
      prompts[2]!.endsWith("2<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n"),
    );
    assert.equal(environmentReturn, 2);
    assert.deepEqual(environmentMetrics, { counted: 3 });
    assert.deepEqual(result, { isTruncated: false, metrics: { steps: 3, done: 1 } });
  });
});
