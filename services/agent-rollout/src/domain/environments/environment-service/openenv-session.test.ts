import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { eventually } from "@hone/testing";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import "../../built-ins.ts";
import { Endpoints } from "../../endpoints.ts";
import { jobOf, runJob, WritingPolicy } from "../../testing/row-rollouts.ts";
import { FakeOpenenvServer, type FakeReply } from "./testing/fake-openenv-server.ts";

/* Rollouts of the agent gym in an environment behind a server that speaks OpenEnv's protocol. */

const renderer = new ChatRenderer(chatmlTokenizer());
const endpoints = new Endpoints({
  HONE_ENDPOINT_KEY: "secret",
  HONE_ENDPOINT_KEY_HOSTS: "127.0.0.1",
});
const errorOf = (code: string, more: object = {}) =>
  JSON.stringify({ type: "error", data: { message: "it failed", code, ...more } });

describe("environment_service at a server of OpenEnv", { timeout: 60_000 }, () => {
  let server: FakeOpenenvServer;
  before(async () => {
    server = await FakeOpenenvServer.start();
  });
  after(() => server[Symbol.asyncDispose]());
  afterEach(async () => {
    server.behave = () => undefined;
    server.refusal = undefined;
    server.messages.length = 0;
    await eventually("all sessions to be closed", async () => server.sessions === 0);
  });

  const play = async (answers: readonly string[], config: Readonly<Record<string, unknown>> = {}) => {
    const policy = new WritingPolicy(renderer, ...answers);
    const configJson = JSON.stringify({
      protocol: "openenv",
      url: server.url,
      observationField: "prompt",
      ...config,
    });
    const environment = { name: "environment_service", seed: 7, configJson };
    const job = jobOf({
      agentName: "gym",
      agentConfigJson: "{}",
      task: { id: "words:7", environment, row: undefined },
    });
    return { record: await runJob(job, renderer, policy, { endpoints }), policy };
  };

  test("an episode is one connection: the reset with the seed, a step for each answer, and a goodbye", async () => {
    const { record, policy } = await play(["moon", "sun"], {
      taskId: "t1",
      params: { level: 2 },
      actionParams: { game: "words" },
    });
    assert.equal(record.reason, "");
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(server.messages, [
      { type: "reset", data: { seed: 7, task_id: "t1", level: 2 } },
      { type: "step", data: { game: "words", message: "moon" } },
      { type: "step", data: { game: "words", message: "sun" } },
      { type: "close" },
    ]);
    assert.match(policy.prompts[1] ?? "", /Which word is it.*moon.*No\./s);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0.25, 1],
    );
    const { success, action_is_valid } = record.metrics;
    assert.deepEqual([success, action_is_valid], [1, 1]);
    assert.equal(record.turns[0]?.info?.level, 2);
  });

  test("without observationField the model is shown the observation as JSON", async () => {
    const { policy } = await play(["sun"], { observationField: undefined });
    assert.match(policy.prompts[0] ?? "", /\{"prompt":"Which word is it\?","level":2,"legal":\[1,2\]\}/);
  });

  test("an action that the server's schema refuses is the model's: it is told, and the episode goes on", async () => {
    const errors = [
      { type: "int_parsing", loc: ["message"], msg: "Input should be a valid integer", ctx: {} },
    ];
    server.behave = ({ data }) =>
      data?.message === "one" ? errorOf("VALIDATION_ERROR", { errors }) : undefined;
    const { record, policy } = await play(["one", "sun"]);
    assert.equal(record.outcome, Outcome.completed);
    assert.match(policy.prompts[1] ?? "", /refused: Input should be a valid integer\.\n\nWhich word is it/);
    assert.equal(record.metrics.action_is_valid, 0.5);
    assert.equal(record.environmentReturn, 1);
  });

  for (const type of ["missing", "extra_forbidden"]) {
    test(`a configuration that does not fit the server's schema (${type}) ends the rollout for good`, async () => {
      const errors = [{ type, loc: ["message"], msg: "wrong" }];
      server.behave = ({ type: asked }) =>
        asked === "step" ? errorOf("VALIDATION_ERROR", { errors }) : undefined;
      const { record } = await play(["sun"]);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, /message: wrong.*correct actionField/);
      assert.deepEqual(record.failedAttempts, []);
    });
  }

  test("a field that the observation lacks ends the rollout for good, with the names of those that it has", async () => {
    const { record } = await play(["sun"], { observationField: "board" });
    assert.match(record.reason, /no entry "board", but prompt, level, legal; correct observationField/);
    assert.deepEqual(record.failedAttempts, []);
  });

  const broken: Readonly<Record<string, FakeReply>> = {
    "the end of the connection": "drop",
    "an error of the environment": errorOf("EXECUTION_ERROR"),
    "no JSON": "<html>",
    "another shape": '{"type":"observation","data":{"observation":"text","reward":1,"done":true}}',
    "NaN as a reward": '{"type":"observation","data":{"observation":{},"reward":NaN,"done":true}}',
    "an answer that is too long": JSON.stringify({ type: "x", data: "a".repeat(5_000) }),
    silence: "silence",
  };
  for (const [what, reply] of Object.entries(broken)) {
    test(`a step that is answered with ${what} repeats the attempt with a fresh connection, and is never scored`, async () => {
      server.behave = ({ type }, count) => (type === "step" && count === 1 ? reply : undefined);
      const { record } = await play(["sun"], { maxReplyBytes: 4_096, timeoutMs: 500 });
      assert.equal(record.failedAttempts.length, 1);
      assert.match(record.failedAttempts[0] ?? "", /take a step in the environment: ws:/);
      assert.equal(record.outcome, Outcome.completed);
      assert.equal(record.environmentReturn, 1);
    });
  }

  test("a server whose places are all taken is asked again", async () => {
    server.behave = ({ type }, count) =>
      type === "reset" && count === 1 ? errorOf("CAPACITY_REACHED") : undefined;
    const { record } = await play(["sun"]);
    assert.equal(record.outcome, Outcome.completed);
    assert.match(record.failedAttempts[0] ?? "", /CAPACITY_REACHED/);
  });

  test("a handshake that is refused ends the rollout for good, one that fails does not", async () => {
    server.refusal = 403;
    const { record: refused } = await play(["sun"]);
    assert.match(refused.reason, /answered with status 403; correct url or keyVariable/);
    assert.deepEqual(refused.failedAttempts, []);
    server.refusal = 503;
    const { record: failed } = await play(["sun"]);
    assert.equal(failed.outcome, Outcome.infraFailed);
    assert.equal(failed.failedAttempts.length, 1);
  });

  test("the key is sent with the handshake", async () => {
    await play(["sun"], { keyVariable: "HONE_ENDPOINT_KEY" });
    assert.equal(server.authorization, "Bearer secret");
  });
});
