import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { checkConfig } from "@hone/agents";
import { Outcome } from "@hone/core";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import "../../built-ins.ts";
import { Endpoints } from "../../endpoints.ts";
import type { RolloutJob } from "../../rollout-job.ts";
import { jobOf, runJob, WritingPolicy } from "../../testing/row-rollouts.ts";
import { environmentServiceConfigSchema } from "./config.ts";
import { FakeAgentjetServer, type FakeAnswer } from "./testing/fake-agentjet-server.ts";

/* Rollouts of the agent gym in an environment behind a server that speaks AgentJet's protocol. */

const renderer = new ChatRenderer(chatmlTokenizer());
const endpoints = new Endpoints({
  HONE_ENDPOINT_KEY_GAMES: "secret",
  HONE_ENDPOINT_KEY_GAMES_HOSTS: "127.0.0.1",
  HONE_ENDPOINT_KEY_ELSEWHERE: "other",
});

describe("the environment environment_service", { timeout: 60_000 }, () => {
  let server: FakeAgentjetServer;
  before(async () => {
    server = await FakeAgentjetServer.start();
  });
  after(() => server[Symbol.asyncDispose]());
  afterEach(() => {
    server.behave = () => undefined;
    server.calls.length = 0;
    assert.equal(server.open.size, 0, "an instance was not released");
  });

  const play = (
    answers: readonly string[],
    config: Readonly<Record<string, unknown>> = {},
    changes: Partial<RolloutJob> = {},
    signal = new AbortController().signal,
  ) => {
    const policy = new WritingPolicy(renderer, ...answers);
    const configJson = JSON.stringify({ url: server.url, envType: "words", taskId: "sun", ...config });
    const job = jobOf({
      agentName: "gym",
      agentConfigJson: "{}",
      task: {
        id: "words:sun",
        environment: { name: "environment_service", seed: 7, configJson },
        row: undefined,
      },
      ...changes,
    });
    return runJob(job, renderer, policy, { endpoints, signal }).then((record) => ({ record, policy }));
  };
  const limits = jobOf({
    agentName: "",
    agentConfigJson: "",
    task: { id: "", environment: undefined, row: {} },
  }).limits;
  const once = (verb: string, answer: FakeAnswer) => {
    server.behave = (call, count) => (call.verb === verb && count === 1 ? answer : undefined);
  };

  test("the model sees the server's messages, and the server gets its answers, with one instance for the episode", async () => {
    const { record, policy } = await play(["moon", "sun"]);
    assert.equal(record.reason, "");
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(server.verbs, ["create", "step", "step", "evaluate", "release"]);
    assert.equal(new Set(server.calls.map(({ body }) => body.instance_id)).size, 1);
    assert.deepEqual(server.calls[1]?.body.messages, { role: "assistant", content: "moon" });
    const [{ body: created } = assert.fail()] = server.calls;
    assert.deepEqual([created.env_type, created.task_id, created.params], ["words", "sun", { seed: 7 }]);
    assert.match(policy.prompts[1] ?? "", /You guess a word.*Which word is it.*moon.*No\./s);
    assert.equal(record.samples.length, 1);
  });

  test("the reward is what evaluate gives, once, at the step that ended the episode", async () => {
    const { record } = await play(["moon", "sun"]);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0, 1],
    );
    assert.equal(record.environmentReturn, 1);
    const { success, score, action_is_valid, steps, done } = record.metrics;
    assert.deepEqual(
      { success, score, action_is_valid, steps, done },
      { success: 1, score: 1, action_is_valid: 1, steps: 2, done: 1 },
    );
  });

  test("the rewards of steps count without evaluate, and beside it where the configuration says so", async () => {
    const { record: steps } = await play(["moon", "sun"], { evaluate: false });
    assert.deepEqual(
      steps.turns.map(({ reward }) => reward),
      [0.1, 0.5],
    );
    assert.equal(steps.metrics.success, 0); // 0.6 is less than successReward
    assert.ok(!server.verbs.includes("evaluate"));
    const { record: both } = await play(["moon", "sun"], { stepRewards: true });
    assert.deepEqual(
      both.turns.map(({ reward }) => reward),
      [0.1, 1.5],
    );
  });

  test("an episode that rollout.maxTurns or the context ends is evaluated too, before it is released", async () => {
    const { record } = await play(["moon"], {}, { limits: { ...limits, maxTurns: 2 } });
    assert.equal(record.outcome, Outcome.truncated);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0, 0.25],
    );
    assert.equal(record.environmentReturn, 0.25);
    assert.equal(record.metrics.score, 0.25);
    assert.deepEqual(server.verbs, ["create", "step", "step", "evaluate", "release"]);
    const long = await play(
      ["moon ".repeat(20)],
      {},
      { limits: { ...limits, maxTurns: 90, maxContextTokens: 600 } },
    );
    assert.equal(long.record.outcome, Outcome.truncated);
    assert.match(long.record.reason, /context is full/);
    assert.equal(long.record.environmentReturn, 0.25);
  });

  test("an episode that maxSteps ends is truncated, and evaluated in its last step", async () => {
    const { record } = await play(["moon"], { maxSteps: 3 });
    assert.equal(record.outcome, Outcome.truncated);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0, 0, 0.25],
    );
    assert.equal(server.verbs.filter((verb) => verb === "evaluate").length, 1);
  });

  test("the seed is the task where none is named, and the server's truncation is one", async () => {
    server.behave = ({ verb }) =>
      verb === "step"
        ? {
            kind: "data",
            data: {
              state: { role: "tool", content: "Time is up." },
              reward: true,
              is_terminated: true,
              info: { truncated: true, success: 1 },
            },
          }
        : undefined;
    const { record } = await play(["7"], { taskId: undefined, evaluate: false });
    assert.equal(server.calls[0]?.body.task_id, "7");
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.environmentReturn, 1);
    assert.equal(record.metrics.success, 1);
  });

  test("the key is sent to the host that it is bound to, and a run with any other is refused for good", async () => {
    await play(["sun"], { keyVariable: "HONE_ENDPOINT_KEY_GAMES" });
    assert.ok(server.calls.every(({ authorization }) => authorization === "Bearer secret"));
    server.calls.length = 0;
    const { record } = await play(["sun"], { keyVariable: "HONE_ENDPOINT_KEY_ELSEWHERE" });
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /HONE_ENDPOINT_KEY_ELSEWHERE is bound to no host/);
    assert.deepEqual(record.failedAttempts, []);
    assert.deepEqual(server.calls, []);
  });

  const broken: Readonly<Record<string, FakeAnswer>> = {
    "a broken connection": { kind: "drop" },
    "status 500": { kind: "text", status: 500, text: "Traceback (most recent call last): …" },
    "status 503": { kind: "text", status: 503, text: "busy" },
    "no JSON": { kind: "text", text: "<html>" },
    "NaN as a reward": {
      kind: "text",
      text: '{"success":true,"data":{"state":[],"reward":NaN,"is_terminated":true}}',
    },
    "a reward beyond all bounds": {
      kind: "text",
      text: '{"success":true,"data":{"state":[],"reward":1e999,"is_terminated":true}}',
    },
    "a text as a reward": { kind: "data", data: { state: [], reward: "1", is_terminated: true, info: {} } },
    "no state": { kind: "data", data: null },
    "an answer that is too long": {
      kind: "data",
      data: { state: { role: "user", content: "a".repeat(5_000) }, is_terminated: true },
    },
    "deep nesting": { kind: "text", text: `{"data":${"[".repeat(1_000)}${"]".repeat(1_000)}}` },
    "success false": { kind: "text", text: '{"success":false,"message":"the instance died"}' },
    "a redirect": { kind: "text", status: 307, text: "" },
  };
  for (const [what, answer] of Object.entries(broken)) {
    test(`a step that is answered with ${what} repeats the attempt in a fresh instance, and is never scored`, async () => {
      once("step", answer);
      const { record } = await play(["sun"], { maxReplyBytes: 4_096 });
      assert.equal(record.failedAttempts.length, 1);
      assert.match(record.failedAttempts[0] ?? "", /take a step in the environment: http:/);
      assert.equal(record.outcome, Outcome.completed);
      assert.equal(record.environmentReturn, 1);
      assert.equal(new Set(server.calls.map(({ body }) => body.instance_id)).size, 2);
    });
  }

  test("an evaluation that fails, at the end or after the last turn, repeats the attempt", async () => {
    for (const [answers, maxTurns] of [
      [["sun"], 6],
      [["moon"], 1],
    ] as const) {
      server.calls.length = 0;
      once("evaluate", { kind: "data", data: "NaN" });
      const { record } = await play(answers, {}, { limits: { ...limits, maxTurns } });
      assert.match(record.failedAttempts[0] ?? "", /evaluate the episode/);
      assert.deepEqual(server.verbs.filter((verb) => verb === "evaluate").length, 2);
    }
  });

  test("a server that stays silent is given up after timeoutMs, and the rollout ends as infra_failed without a reward", async () => {
    server.behave = ({ verb }) => (verb === "step" ? { kind: "silence" } : undefined);
    const { record } = await play(["sun"], { timeoutMs: 50 });
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /does not answer \(Waited 50 ms/);
    assert.equal(record.failedAttempts.length, 1);
    assert.equal(record.environmentReturn, 0);
  });

  test("a server that was started again in mid-episode has lost the instance, so the attempt is repeated", async () => {
    server.behave = ({ verb }, count) => {
      if (verb === "step" && count === 2) server.forget();
      return undefined;
    };
    const { record } = await play(["moon", "moon", "sun"]);
    assert.match(record.failedAttempts[0] ?? "", /status 400: Instance not found|status 400 \(/);
    assert.equal(record.outcome, Outcome.completed);
  });

  test("a server that cannot be reached ends the rollout as infra_failed", async () => {
    const gone = await FakeAgentjetServer.start();
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    const { record } = await play(["sun"], { url });
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /does not answer/);
  });

  for (const [what, answer] of [
    ["a status below 500", { kind: "text", status: 404, text: '{"detail":"no task sun"}' }],
    ["success false", { kind: "text", text: '{"success":false,"message":"no task sun"}' }],
  ] as const) {
    test(`a task that the server refuses with ${what} ends the rollout at once, with the server's reason`, async () => {
      server.behave = ({ verb }) => (verb === "create" ? answer : undefined);
      const { record } = await play(["sun"]);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(
        record.reason,
        /asked for "words" with the task "sun".*\(no task sun\); correct envType, taskId/,
      );
      assert.deepEqual(record.failedAttempts, []);
    });
  }

  test("a server that is busy is asked again", async () => {
    once("create", { kind: "text", status: 429, text: "all places are taken" });
    const { record } = await play(["sun"]);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.failedAttempts.length, 1);
  });

  test("a rollout that is cancelled during a step ends at once, and its instance is released", async () => {
    const cancelling = new AbortController();
    server.behave = ({ verb }) => {
      if (verb !== "step") return undefined;
      cancelling.abort(new Error("cancelled"));
      return { kind: "silence" };
    };
    const started = performance.now();
    await play(["sun"], {}, {}, cancelling.signal);
    assert.ok(performance.now() - started < 5_000);
    assert.equal(server.verbs.at(-1), "release");
  });

  test("what else the server says is kept in the turns' info: single values under plain names", async () => {
    const info = {
      place: "hall",
      "odd key": 1,
      list: [1],
      huge: "a".repeat(1_000),
      role: "judge",
      level: 3,
      state: "s1",
    };
    server.behave = ({ verb }) =>
      verb === "step"
        ? { kind: "data", data: { state: { role: "user", content: "" }, is_terminated: true, info } }
        : undefined;
    const { record } = await play(["sun"]);
    const { place, level, ...others } = record.turns[0]?.info ?? {};
    assert.deepEqual({ place, level }, { place: "hall", level: 3 });
    assert.deepEqual(Object.keys(others), ["state"]);
  });
});

describe("the configuration of environment_service", () => {
  const problemsOf = (config: object) => {
    const checked = checkConfig(environmentServiceConfigSchema, { url: "http://127.0.0.1:1", ...config });
    return checked.kind === "valid" ? [] : checked.problems.map(({ path }) => path.join("."));
  };

  test("refuses what is no address, unknown keys, keys of another protocol and variables that hold no endpoint's key", () => {
    assert.deepEqual(problemsOf({}), []);
    assert.deepEqual(problemsOf({ protocol: "openenv", actionField: "message" }), []);
    assert.deepEqual(problemsOf({ url: "file:///etc/passwd" }), ["url"]);
    assert.deepEqual(problemsOf({ task: "sun" }), ["task"]);
    assert.deepEqual(problemsOf({ actionField: "message" }), ["actionField"]);
    assert.deepEqual(problemsOf({ protocol: "openenv", evaluate: true }), ["evaluate"]);
    assert.deepEqual(problemsOf({ keyVariable: "AWS_SECRET_ACCESS_KEY" }), ["keyVariable"]);
  });
});
