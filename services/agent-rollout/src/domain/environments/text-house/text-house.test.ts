import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineAgent, defineEnvironment } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { Random } from "@hone/core";
import { gymAgent } from "../../agents/gym/gym-agent.ts";
import { DIFFICULTIES, houseConfig } from "./testing.ts";
import { TextHouse, textHouseConfigSchema } from "./text-house.ts";
import { HOUSE_VOCABULARY, wordsOf } from "./vocabulary.ts";

const gym = defineAgent(gymAgent);
const definition = defineEnvironment({
  configSchema: textHouseConfigSchema,
  create: (config) => new TextHouse(config),
});

/** Plays the known solution to its end. */
function playSolution(house: TextHouse, seed: number) {
  const start = house.reset(seed);
  const steps = house.solution().map((command) => house.step(command));
  return { start, steps };
}

describe("TextHouse", () => {
  for (const [name, config] of Object.entries(DIFFICULTIES)) {
    test(`its ${name} tasks can be solved within their steps, for 200 seeds`, () => {
      const house = new TextHouse(houseConfig(config));
      for (let seed = 0; seed < 200; seed++) {
        const { start, steps } = playSolution(house, seed);
        const last = steps.at(-1);
        assert.equal(steps.length, start.info.solution_steps, `seed ${seed}`);
        assert.deepEqual([last?.terminated, last?.truncated, last?.reward], [true, false, 1], `seed ${seed}`);
        assert.ok(steps.slice(0, -1).every(({ terminated, reward }) => !terminated && reward === 0));
        assert.deepEqual(house.metrics(), {
          success: 1,
          subgoals: 1,
          action_is_valid: 1,
          action_is_effective: 1,
        });
      }
    });
  }

  test("introduces rooms and task first, and then tells what each action did", () => {
    const house = new TextHouse(houseConfig());
    const { observation, info } = house.reset(3);
    assert.ok(observation.includes(String(info.task)), observation);
    assert.match(observation, /\nAvailable actions: /);
    const { observation: looked, info: after } = house.step("LOOK");
    assert.equal(after.action, "look");
    assert.deepEqual([after.action_is_valid, after.action_is_effective], [true, false]);
    assert.notEqual(looked, observation);
    const quiet = new TextHouse(houseConfig({ showActions: false }));
    assert.doesNotMatch(quiet.reset(3).observation, /Available actions/);
  });

  test("gives each subgoal's reward once", () => {
    const house = new TextHouse(houseConfig({ subgoalReward: 0.1, tasks: ["put_clean"] }));
    const { steps } = playSolution(house, 5);
    const rewards = steps.map(({ reward }) => reward).filter((reward) => reward !== 0);
    // Found and taken, cleaned, put.
    const total = rewards.reduce((sum, reward) => sum + reward, 0);
    assert.ok(Math.abs(total - 1.3) < 1e-9, `${rewards}`);
  });

  test("an empty action costs the penalty, what is not understood costs a step, and steps run out", () => {
    const house = new TextHouse(houseConfig({ formatPenalty: -0.5, maxSteps: 4, rooms: 1, tasks: ["put"] }));
    house.reset(1);
    const rewards = ["", "dance", "take __proto__ from constructor", "x".repeat(100_000)].map((action) => {
      const { reward, truncated, info } = house.step(action);
      assert.equal(info.action_is_valid, false);
      return [reward, truncated];
    });
    assert.deepEqual(rewards, [
      [-0.5, false],
      [0, false],
      [0, false],
      [0, true],
    ]);
    assert.throws(() => house.step("look"), /the episode is over/);
    assert.throws(() => new TextHouse(houseConfig()).step("look"), /needs a reset/);
  });

  test("is the same for a seed, whatever was played before", () => {
    const one = new TextHouse(houseConfig());
    const played = playSolution(one, 11);
    playSolution(one, 12);
    assert.deepEqual(playSolution(one, 11), played);
    assert.deepEqual(playSolution(new TextHouse(houseConfig()), 11), played);
    assert.notEqual(one.reset(12).observation, played.start.observation);
  });

  test("random legal play never fails, each legal action is possible, and all words are known", () => {
    for (let seed = 0; seed < 500; seed++) {
      const house = new TextHouse(houseConfig({ rooms: 1 + (seed % 6), maxSteps: 40 }));
      house.reset(seed);
      const random = new Random(seed);
      for (;;) {
        const { observation, terminated, truncated, info } = house.step(random.pick(house.legalActions()));
        assert.equal(info.action_is_valid, true);
        const unknown = wordsOf(observation).filter((word) => !HOUSE_VOCABULARY.includes(word));
        assert.deepEqual(unknown, []);
        if (terminated || truncated) break;
      }
    }
  });

  test("its configuration refuses what contradicts itself", () => {
    for (const wrong of [
      { rooms: 1, tasks: ["unlock"] },
      { rooms: 2, lockedDoors: 2 },
      { tasks: ["put", "put"] },
      { tasks: ["dance"] },
      { room: 3 },
    ]) {
      assert.equal(textHouseConfigSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
    }
  });
});

describe("the agent gym in a text house", () => {
  test("solves a task by answers and by tool calls", async () => {
    const known = new TextHouse(houseConfig());
    known.reset(4);
    const commands = known.solution();
    const call = (command: string) =>
      `<tool_call>\n${JSON.stringify({ name: "act", arguments: { command } })}\n</tool_call>`;
    for (const [config, write] of [
      [{}, (command: string) => `<answer>${command}</answer>`],
      [{ actionFormat: "tool_call" }, call],
    ] as const) {
      const played = await playAgent(gym, {
        environment: { definition, seed: 4 },
        config,
        answers: commands.map(write),
        maxTurns: 40,
      });
      assert.equal(played.environmentReturn, 1);
      assert.equal(played.environmentMetrics.success, 1);
      assert.deepEqual(played.result.metrics, { steps: commands.length, done: 1 });
    }
  });
});
