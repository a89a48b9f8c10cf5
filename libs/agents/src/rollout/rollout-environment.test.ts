import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOfTraceparent } from "@hone/telemetry";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";
import { defineAgent } from "../definitions/agent.ts";
import { defineEnvironment, type Environment, type EnvironmentStep } from "../definitions/environment.ts";
import { playAgent } from "../testing.ts";
import { RolloutEnvironment } from "./rollout-environment.ts";
import type { RolloutObserver } from "./rollout-observer.ts";

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

test("the info of an environment is added to the info that the call recorded", async () => {
  const { turns } = await playAgent(player, { environment: { definition: coin }, answers: ["heads"] });
  assert.deepEqual(
    turns.map(({ info, reward }) => [info, reward]),
    [[{ role: "player", said: "heads", state: turns[0]!.info!.state }, 1]],
  );
});

test("a turn is recorded with the state in which it acted: what the environment named, or a digest of what it showed", async () => {
  /** A way of three steps; the second place has a name. */
  const way = defineEnvironment({
    configSchema: z.strictObject({}),
    create: () => {
      let place = 0;
      const shown = () => ({
        observation: place === 0 ? "the gate" : `step ${place}`,
        info: place === 1 ? { state: "hall" } : {},
      });
      return {
        reset: shown,
        step: () => {
          place = (place + 1) % 3;
          return { ...shown(), reward: 0, terminated: false, truncated: false };
        },
        metrics: () => ({}),
      };
    },
  });
  const walker = defineAgent({
    configSchema: z.strictObject({}),
    needsEnvironment: true,
    buildGraph: () => undefined,
    async run(_graph, { model, environment }) {
      await environment!.reset();
      for (let step = 0; step < 4; step++) {
        await environment!.step((await model.invoke([new HumanMessage(`on ${step}`)])).text);
      }
      return {};
    },
  });
  const answers = ["on", "on", "on", "on"];
  const { turns } = await playAgent(walker, { environment: { definition: way }, answers });
  const [gate, hall, end, again] = turns.map(({ info }) => info?.state);
  assert.match(String(gate), /^[0-9a-f]{16}$/);
  assert.equal(hall, "hall");
  assert.equal(again, gate);
  assert.notEqual(end, gate);
});

test("a turn is recorded with the actions that the environment was given, which may be none or several", async () => {
  const hasty = defineAgent({
    configSchema: z.strictObject({}),
    needsEnvironment: true,
    buildGraph: () => undefined,
    async run(_graph, { model, environment }) {
      await environment!.reset();
      await model.invoke([new HumanMessage("think")]);
      await model.invoke([new HumanMessage("act")]);
      await environment!.step("heads");
      await environment!.step("");
      return {};
    },
  });
  const { turns } = await playAgent(hasty, { environment: { definition: coin }, answers: ["heads"] });
  assert.deepEqual(
    turns.map(({ actions }) => actions),
    [undefined, ["heads", ""]],
  );
});

test("whoever observes an attempt hears of the reward for an episode that its environment had to end", async () => {
  const heard: unknown[] = [];
  const observer = {
    onReset: () => heard.push("reset"),
    onStep: (_answer: string, { reward }: EnvironmentStep) => heard.push(reward),
    onFinish: (reward: number) => heard.push(reward),
  } as unknown as RolloutObserver;
  const inner: Environment = {
    reset: () => ({ observation: "", info: {} }),
    step: () => ({ observation: "", info: {}, reward: 1, terminated: false, truncated: false }),
    finish: () => 0.5,
    metrics: () => ({}),
  };
  const trace = contextOfTraceparent(undefined);
  const environment = new RolloutEnvironment({ name: "open", seed: 1, inner, trace, observer });
  await environment.reset();
  await environment.step("on");
  await environment.finish();
  assert.deepEqual(heard, ["reset", 1, 0.5]);
});
