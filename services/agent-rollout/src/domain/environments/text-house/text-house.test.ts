import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf, type EnvironmentStep, environmentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { Random } from "@hone/core";
import "../../built-ins.ts";
import { HOUSE_INFO_KEYS } from "./description.ts";
import { TASK_KINDS, TaskKind } from "./tasks.ts";
import { DIFFICULTIES, houseConfig } from "./testing.ts";
import { TextHouse, type TextHouseConfig, textHouseConfigSchema } from "./text-house.ts";
import { HOUSE_VOCABULARY, wordsOf } from "./vocabulary.ts";

const houseWith = (config: Partial<TextHouseConfig> = {}) => new TextHouse(houseConfig(config));

function playSolution(environment: TextHouse): readonly EnvironmentStep[] {
  return environment.solution().map((command) => environment.step(command));
}

/** Plays random legal actions to the end of the episode. */
function playAtRandom(environment: TextHouse, seed: number): readonly EnvironmentStep[] {
  const random = new Random(seed);
  const steps: EnvironmentStep[] = [];
  do steps.push(environment.step(random.pick(environment.legalActions())));
  while (!steps.at(-1)!.terminated && !steps.at(-1)!.truncated);
  return steps;
}

/** The first seed whose task is of a kind. */
function seedOf(kind: TaskKind): number {
  for (let seed = 0; ; seed++) if (houseWith().reset(seed).info.task_kind === kind) return seed;
}

describe("TextHouse", () => {
  for (const [name, config] of Object.entries(DIFFICULTIES)) {
    test(`the solutions of 200 seeds solve their tasks at the difficulty ${name}`, (t) => {
      const environment = houseWith(config);
      const lengths: number[] = [];
      for (let seed = 0; seed < 200; seed++) {
        const { info } = environment.reset(seed);
        const steps = playSolution(environment);
        assert.equal(steps.length, info.solution_steps);
        for (const step of steps.slice(0, -1)) {
          assert.deepEqual([step.reward, step.terminated, step.truncated], [0, false, false]);
        }
        const last = steps.at(-1)!;
        assert.deepEqual(
          [last.reward, last.terminated, last.truncated, last.info.success],
          [1, true, false, true],
        );
        assert.deepEqual(environment.metrics(), {
          success: 1,
          subgoals: 1,
          action_is_valid: 1,
          action_is_effective: 1,
        });
        lengths.push(steps.length);
      }
      lengths.sort((a, b) => a - b);
      const quantiles = [0, 20, 100, 180, 199].map((index) => lengths[index]!);
      t.diagnostic(`steps of the solutions, least, 10 %, median, 90 %, most: ${quantiles.join(", ")}`);
      assert.ok(quantiles[0]! >= 3 && quantiles[4]! >= 10);
    });
  }

  test("shows the rooms, the player's room, the task and the possible commands first", () => {
    const environment = houseWith();
    const { observation, info } = environment.reset(1);
    assert.equal(
      observation,
      [
        "The house has these rooms: kitchen, attic, hallway.",
        "You are in the kitchen. You see cabinet 1, cabinet 2, counter 1, drawer 1, fridge 1, microwave 1, sink 1. The hallway is to the north, behind the locked hallway door, which has a brass lock. The attic is to the east.",
        "Your task is to put a hot tomato in a drawer.",
        "Available actions: go east, go to cabinet 1, go to cabinet 2, go to counter 1, go to drawer 1, go to fridge 1, go to microwave 1, go to sink 1, inventory, look",
      ].join("\n"),
    );
    const { state, ...shown } = info;
    assert.match(String(state), /^[0-9a-f]{16}$/);
    assert.deepEqual(shown, {
      room: "kitchen",
      place: "none",
      carrying: "nothing",
      task: "put a hot tomato in a drawer",
      task_kind: "put_hot",
      score: 0,
      subgoals: 0,
      steps_left: 30,
      solution_steps: 8,
    });
    assert.deepEqual(Object.keys(shown), [...HOUSE_INFO_KEYS]);
  });

  test("tells the result of each action", () => {
    const environment = houseWith({ showActions: false });
    environment.reset(1);
    const told = (command: string) => environment.step(command).observation;
    assert.equal(told("go north"), "The hallway door is locked.");
    assert.equal(told("take tomato 1"), "Nothing happens.");
    assert.equal(told("sing a song"), "That is not a command.");
    assert.equal(told("go to cabinet 1"), "You go to the cabinet 1. The cabinet 1 is closed.");
    assert.equal(
      told("open cabinet 1"),
      "You open the cabinet 1. In the cabinet 1 you see brass key, tomato 1.",
    );
    assert.equal(told("open cabinet 1"), "The cabinet 1 is already open.");
    assert.equal(told("go to cabinet 1"), "You are already at the cabinet 1.");
    assert.equal(told("examine tomato 1"), "The tomato 1 is dirty.");
    assert.equal(told("examine brass key"), "The brass key may fit a brass lock.");
    assert.equal(told("take tomato 1 from cabinet 1"), "You take the tomato 1 from the cabinet 1.");
    assert.equal(told("inventory"), "You carry tomato 1.");
    assert.equal(told("go to the sink"), "You go to the sink 1. In the sink 1 you see nothing.");
    assert.equal(
      told("clean tomato 1 with sink 1"),
      "You clean the tomato 1 with the sink 1. It is clean now.",
    );
    assert.equal(told("clean tomato 1 with sink 1"), "The tomato 1 is already clean.");
    assert.match(
      told("look"),
      /^You are in the kitchen\. .* You are at the sink 1\. In the sink 1 you see nothing\.$/,
    );
  });

  test("gives subgoals their reward when they are first reached, and the solution 1", () => {
    const environment = houseWith({ subgoalReward: 0.1 });
    environment.reset(1);
    const rewards = [
      "go to cabinet 1",
      "open cabinet 1",
      "take tomato 1 from cabinet 1",
      "put tomato 1 in cabinet 1",
      "take tomato 1 from cabinet 1",
      "go to microwave 1",
      "heat tomato 1 with microwave 1",
      "go to drawer 1",
      "open drawer 1",
      "put tomato 1 in drawer 1",
    ].map((command) => environment.step(command).reward);
    assert.deepEqual(rewards, [0, 0.1, 0.1, 0, 0, 0, 0.1, 0, 0, 1]);
  });

  test("counts the reached share of the subgoals also without a reward for them", () => {
    const environment = houseWith();
    environment.reset(1);
    for (const command of ["go to cabinet 1", "open cabinet 1", "take tomato 1 from cabinet 1"])
      environment.step(command);
    assert.equal(environment.metrics().subgoals, 2 / 4);
    assert.equal(environment.metrics().success, 0);
  });

  test("the empty action gives the format penalty, and other actions that are none do not", () => {
    const environment = houseWith({ formatPenalty: -0.5 });
    environment.reset(1);
    assert.equal(environment.step("").reward, -0.5);
    assert.equal(environment.step(" \n").reward, -0.5);
    assert.equal(environment.step("sing a song").reward, 0);
    assert.equal(environment.step("take __proto__").reward, 0);
    assert.equal(environment.metrics().action_is_valid, 0);
  });

  test("possible actions are valid, and those that change the house effective", () => {
    const environment = houseWith();
    environment.reset(1);
    const flags = ["look", "go to fridge 1", "go to fridge 1", "go to moon", "?"].map((command) => {
      const { info } = environment.step(command);
      return [info.action, info.action_is_valid, info.action_is_effective];
    });
    assert.deepEqual(flags, [
      ["look", true, false],
      ["go to fridge 1", true, true],
      ["go to fridge 1", true, false],
      ["go to moon", false, false],
      [null, false, false],
    ]);
    assert.equal(environment.metrics().action_is_valid, 3 / 5);
    assert.equal(environment.metrics().action_is_effective, 1 / 5);
  });

  test("is truncated after its last step, unless that step solves the task", () => {
    const environment = houseWith({ maxSteps: 8 });
    assert.equal(environment.reset(1).info.solution_steps, 8);
    const last = playSolution(environment).at(-1)!;
    assert.deepEqual([last.terminated, last.truncated, last.reward], [true, false, 1]);
    environment.reset(1);
    const looks = Array.from({ length: 8 }, () => environment.step("look"));
    assert.deepEqual(
      looks.map(({ truncated }) => truncated),
      [false, false, false, false, false, false, false, true],
    );
    assert.ok(!looks.at(-1)!.observation.includes("Available actions"));
  });

  test("equal states have equal names, and others have others", () => {
    const environment = houseWith();
    const start = environment.reset(1).info.state;
    assert.equal(environment.step("look").info.state, start);
    const atFridge = environment.step("go to fridge 1").info.state;
    assert.notEqual(atFridge, start);
    environment.step("open fridge 1");
    assert.equal(environment.step("close fridge 1").info.state, atFridge);
  });

  test("random play never fails, and has every command valid, over 500 seeds", () => {
    let successes = 0;
    for (let seed = 0; seed < 500; seed++) {
      const environment = houseWith(seed % 2 === 0 ? {} : DIFFICULTIES.medium);
      environment.reset(seed);
      playAtRandom(environment, seed);
      const { success, action_is_valid } = environment.metrics();
      assert.equal(action_is_valid, 1);
      successes += success!;
    }
    assert.ok(successes > 0 && successes < 100, `${successes}`);
  });

  test("takes thousands of steps a second, commands included", (t) => {
    const environment = houseWith(DIFFICULTIES.medium);
    let steps = 0;
    const begin = performance.now();
    for (let seed = 0; seed < 100; seed++) {
      environment.reset(seed);
      steps += playAtRandom(environment, seed).length;
    }
    const perSecond = steps / ((performance.now() - begin) / 1_000);
    t.diagnostic(`${Math.round(perSecond)} steps a second`);
    // Far below what an idle core does, as tests may share theirs with others.
    assert.ok(perSecond > 1_000, `${perSecond}`);
  });

  test("says nothing outside its vocabulary", () => {
    const known = new Set(HOUSE_VOCABULARY);
    for (let seed = 0; seed < 300; seed++) {
      const environment = houseWith(Object.values(DIFFICULTIES)[seed % 5]);
      const { observation, info } = environment.reset(seed);
      const said = [observation, String(info.task)];
      const steps = seed % 2 === 0 ? playSolution(environment) : playAtRandom(environment, seed);
      for (const step of steps) said.push(step.observation);
      assert.deepEqual(
        said.flatMap(wordsOf).filter((word) => !known.has(word)),
        [],
      );
    }
  });

  test("refuses a step before a reset or after the end", () => {
    const environment = houseWith({ maxSteps: 8 });
    assert.throws(() => environment.step("look"), /the house needs a reset before its first step/);
    assert.deepEqual(environment.metrics(), {});
    environment.reset(1);
    playSolution(environment);
    assert.throws(() => environment.step("look"), /the episode is over; reset the house/);
  });

  test("its configuration refuses unknown keys, numbers out of range and tasks that cannot be", () => {
    for (const wrong of [
      { room: 3 },
      { rooms: 0 },
      { rooms: 13 },
      { objects: 1 },
      { maxSteps: 3 },
      { minSolutionSteps: 31 },
      { formatPenalty: 0.1 },
      { subgoalReward: -1 },
      { tasks: [] },
      { tasks: ["put", "put"] },
      { tasks: ["dance"] },
      { rooms: 2, lockedDoors: 2 },
      { rooms: 1, tasks: [TaskKind.unlock] },
    ]) {
      assert.equal(textHouseConfigSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
    }
    const { info } = houseWith({ rooms: 2, tasks: [TaskKind.unlock] }).reset(1);
    assert.equal(info.task_kind, TaskKind.unlock);
  });
});

describe("the agent gym in a text house", () => {
  const gym = agentOf("gym") ?? assert.fail("no agent gym");
  const definition = environmentOf("text_house") ?? assert.fail("no environment text_house");
  /** The commands that solve a seed's task. */
  const solutionOf = (seed: number) => {
    const environment = houseWith();
    environment.reset(seed);
    return environment.solution();
  };

  for (const kind of TASK_KINDS) {
    test(`solves a task of the kind ${kind} in the format answer`, async () => {
      const seed = seedOf(kind);
      const commands = solutionOf(seed);
      const played = await playAgent(gym, {
        environment: { definition, seed },
        answers: commands.map((command) => `<answer>${command}</answer>`),
        maxTurns: 30,
      });
      assert.equal(played.environmentReturn, 1);
      assert.equal(played.environmentMetrics.success, 1);
      assert.equal(played.turns.length, commands.length);
      assert.equal(played.result.isTruncated, false);
      assert.match(played.prompts[0]!, /Give one command in each turn\. Write it as an answer/);
      assert.match(played.prompts[0]!, /Your task is to .*\nAvailable actions: /s);
    });
  }

  test("solves a task by calls of the tool act, whose results are the observations", async () => {
    const played = await playAgent(gym, {
      environment: { definition, seed: 1 },
      config: { actionFormat: "tool_call" },
      answers: solutionOf(1).map(
        (command) => `<tool_call>\n${JSON.stringify({ name: "act", arguments: { command } })}\n</tool_call>`,
      ),
      maxTurns: 30,
    });
    assert.equal(played.environmentReturn, 1);
    assert.match(played.prompts[0]!, /"name": ?"act"/);
    assert.match(played.prompts[0]!, /Call the tool act with the command\./);
    assert.match(played.prompts[1]!, /<tool_response>\n.*You go to the cabinet 1\./s);
  });

  test("tool calls without a command are the empty action", async () => {
    const played = await playAgent(gym, {
      environment: { definition, seed: 1, config: { formatPenalty: -0.25 } },
      config: { actionFormat: "tool_call" },
      answers: [
        '<tool_call>\n{"name": "act", "arguments": {"command": 7}}\n</tool_call>',
        "I will look around.",
      ],
      maxTurns: 2,
    });
    assert.equal(played.environmentReturn, -0.5);
  });

  test("prompts of single turns may show the task and what is known of the state", async () => {
    const played = await playAgent(gym, {
      environment: { definition, seed: 1, config: { showActions: false } },
      config: {
        preset: "plain",
        historyTurns: 0,
        instruction: "",
        promptTemplate: "Task: {task}. You are in the {room} at {place} with {carrying}. {observation}",
      },
      answers: ["go to fridge 1"],
      maxTurns: 2,
    });
    assert.match(
      played.prompts[1]!,
      /Task: put a hot tomato in a drawer\. You are in the kitchen at fridge 1 with nothing\. You go to the fridge 1\./,
    );
  });
});
