import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BucketName, openBucket, request, subjects } from "@hone/messaging";
import {
  type Episode,
  type RenderReply,
  RenderReplySchema,
  RenderRequestSchema,
} from "@hone/proto-gen/rollout";
import { RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { RolloutWorld } from "./testing/rollout-world.ts";

/** An environment of a run's own, which draws itself as text. */
const MODULE = `
import { z } from "zod";
class Light {
  #isOn = false;
  reset() { this.#isOn = false; return { observation: "off", info: {} }; }
  step(action) {
    this.#isOn = action === "on";
    return { observation: this.#isOn ? "on" : "off", reward: 1, terminated: this.#isOn, truncated: false, info: {} };
  }
  metrics() { return {}; }
  render() { return { kind: "text", text: this.#isOn ? "*" : "." }; }
}
export const environments = { light: { configSchema: z.strictObject({}), create: () => new Light() } };
`;

describe("hone.v1.rollout.render", { timeout: 120_000 }, () => {
  let world: RolloutWorld;
  let folder: TemporaryFolder;

  before(async () => {
    folder = await temporaryFolder("render");
    await writeFile(path.join(folder.path, "light.ts"), MODULE);
    world = await RolloutWorld.open();
    await world.startService({ HONE_FILES: folder.path, HONE_ALLOW_MODULES: "yes" });
  });
  after(async () => {
    await world?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  const ask = (message: MessageInitShape<typeof RenderRequestSchema>): Promise<RenderReply> =>
    request(
      world.bus,
      subjects.rolloutRender(),
      RenderRequestSchema,
      create(RenderRequestSchema, message),
      RenderReplySchema,
      { timeoutMs: 30_000 },
    );
  /** What the tracer asks for a stored episode. */
  const askFor = ({ runId, task, turns, environmentState }: Episode) =>
    ask({
      runId,
      ...(task !== undefined && { task }),
      turns: turns.map(({ index, actions, responseText, infoJson }) => ({
        index,
        actions: actions.map(({ text }) => text ?? responseText),
        state: String((JSON.parse(infoJson) as { state?: unknown }).state),
      })),
      environmentState,
    });
  const shown = ({ frames }: RenderReply) =>
    frames.map(({ turn, action, picture }) => [turn, action, picture.case, picture.value]);

  test("an episode that was played is drawn from its stored record", async () => {
    await world.gateway({
      model: "r-lake",
      replica: "one",
      behave: () => world.answer("<answer>Up</answer>"),
    });
    const task = {
      id: "frozen_lake:5",
      environment: "frozen_lake",
      environmentSeed: 5n,
      environmentConfigJson: '{"maxSteps":3}',
    };
    const agentConfigJson = JSON.stringify({
      systemPrompt: "",
      instruction: "",
      promptTemplate: "{observation}",
    });
    await world.submit(world.job("r-lake", { task, agentName: "gym", agentConfigJson }));
    const episode = await world.episodeOf("r-lake");
    const reply = await askFor(episode);
    assert.equal(reply.problem, "");
    assert.equal(reply.frames.length, episode.turns.length + 1);
    assert.ok(
      reply.frames.every(({ picture }) => picture.case === "svg" && picture.value.startsWith("<svg")),
    );
    const other = await askFor({ ...episode, task: { ...episode.task!, environmentSeed: 6n } });
    assert.match(other.problem, /another state than the recorded one/);
    assert.deepEqual(other.frames, []);
  });

  test("an own environment is that of the run's state, and unknown without it", async () => {
    const message = {
      task: { id: "light:1", environment: "light", environmentSeed: 1n, environmentConfigJson: "{}" },
      turns: [{ index: 0, actions: ["wait", "on"], state: "" }],
    };
    const unknown = await ask({ ...message, runId: "r-light" });
    assert.match(unknown.problem, /its environment "light" is unknown/);
    const states = await openBucket(world.bus, BucketName.runState, RunStateSchema);
    const config = {
      agent: { name: "gym", modules: ["light.ts"] },
      dataset: { train: { source: "environment" } },
    };
    const state = { runId: "r-light", phase: RunPhase.COMPLETED, configJson: JSON.stringify(config) };
    await states.put("r-light", create(RunStateSchema, state));
    assert.deepEqual(shown(await ask({ ...message, runId: "r-light" })), [
      [undefined, "", "text", "."],
      [0, "wait", "text", "."],
      [0, "on", "text", "*"],
    ]);
    // The request cannot name modules, and another run's are not used.
    assert.match((await ask({ ...message, runId: "r-other" })).problem, /its environment "light" is unknown/);
  });

  test("what cannot be played again is answered with the reason", async () => {
    const task = { id: "x", environment: "frozen_lake", environmentSeed: 1n, environmentConfigJson: "{}" };
    const problemOf = async (changes: object) =>
      (await ask({ runId: "r-bad", task: { ...task, ...changes } })).problem;
    assert.match(await problemOf({ environment: "" }), /its task has no environment\.$/);
    assert.match(
      await problemOf({ environmentConfigJson: '{"size":1}' }),
      /the environment's size is 1; it must be/,
    );
    assert.match(await problemOf({ environmentConfigJson: "{" }), /configuration is not JSON/);
    assert.match(await problemOf({ environmentSeed: 2n ** 60n }), /is not below 2\^53/);
    assert.match((await ask({ runId: "r-bad" })).problem, /its task has no environment/);
  });

  test("more than four requests at once are refused in their answer", async () => {
    const task = {
      id: "slow",
      environment: "frozen_lake",
      environmentSeed: 5n,
      environmentConfigJson: '{"stepDelayMs":300}',
    };
    const turns = [{ index: 0, actions: ["Up"], state: "" }];
    const replies = await Promise.all(Array.from({ length: 6 }, () => ask({ runId: "r-slow", task, turns })));
    const refused = replies.filter(({ problem }) => /plays 4 other episodes/.test(problem));
    assert.equal(refused.length, 2);
    assert.ok(replies.every((reply) => refused.includes(reply) || reply.frames.length === 2));
  });
});
