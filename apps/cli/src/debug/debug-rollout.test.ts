import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readHubSettings } from "@hone/hub";
import { openStartModel } from "@hone/trainer/start-model";
import { loadRunFile } from "../run/load-run-file.ts";
import type { PolicyChoice } from "./choose-policy.ts";
import { type DebuggedRollout, debugRollout } from "./debug-rollout.ts";
import { CALL, type TestProject, testProject } from "./testing.ts";

/* Plays one rollout in this process with a user's own agent, tool, environment and judge. */

describe("debugRollout()", () => {
  let own: TestProject;
  let events: string[] = [];
  before(async () => {
    own = await testProject();
  });
  after(() => own[Symbol.asyncDispose]());

  const play = async (
    policy: PolicyChoice,
    options: { runFile?: string; row?: number; seed?: number } = {},
  ): Promise<DebuggedRollout> => {
    const { runFile = own.runFile, row = 1, seed } = options;
    const { config } = await loadRunFile(runFile, own.project.folder);
    events = [];
    const record = (what: string) => () => void events.push(what);
    return debugRollout(config, {
      project: own.project,
      file: runFile,
      split: "train",
      row,
      policy,
      seed,
      temperature: undefined,
      signal: new AbortController().signal,
      listener: {
        onTask: record("task"),
        onWait: () => undefined,
        onAttempt: record("attempt"),
        onReset: record("reset"),
        onTurn: record("turn"),
        onToolCall: record("tool"),
        onStep: record("step"),
        onFinish: record("finish"),
        onFailure: (error) => void events.push(`failure ${String(error)}`),
      },
    });
  };
  /** Asserts that the tokens of the turns, one after another, are the training rows. */
  const assertExact = ({ turns, record }: DebuggedRollout) => {
    for (const [index, { tokenIds, lossMask }] of record.samples.entries()) {
      const tokens = turns.filter(({ sample }) => sample === index).flatMap((turn) => turn.tokens);
      assert.deepEqual(
        tokens.map(({ id }) => id),
        Array.from(tokenIds),
      );
      assert.deepEqual(
        tokens.map(({ mask }) => mask),
        [...lossMask],
      );
    }
  };

  test("reports turns, calls of tools and the judge's scores of given answers", async () => {
    const played = await play({ kind: "answers", answers: [CALL, "It is 5."] });
    assert.deepEqual(events, ["task", "attempt", "turn", "tool", "turn"]);
    const [first, second] = played.turns;
    assert.deepEqual(first?.tools, ["add"]);
    assert.deepEqual(first?.messages, [{ role: "user", content: "2 + 3?" }]);
    assert.deepEqual(first?.toolCalls, [
      { name: "add", arguments: { a: 2, b: 3 }, kind: "answered", text: "5" },
    ]);
    assert.deepEqual(
      second?.messages.map(({ role, content }) => [role, content]),
      [["tool", "5"]],
    );
    assert.deepEqual([second?.sample, second?.isNewSample, second?.answer], [0, false, "It is 5."]);
    assert.equal(played.record.samples.length, 1);
    assertExact(played);
    assert.equal(played.record.outcome, "completed");
    assert.ok(played.verdict.kind === "scored");
    assert.equal(played.verdict.reward, 1);
    assert.equal(played.verdict.scores[0]?.reason, "it says the sum");
  });

  test("the judge degenerate penalises a call that cannot be parsed", async () => {
    const runFile = await own.writeRun("degenerate.json", {
      judge: [{ kind: "degenerate", checks: ["loops", "tool_calls"] }],
    });
    const scoreOf = async (...answers: string[]) => {
      const { verdict } = await play({ kind: "answers", answers }, { runFile });
      assert.ok(verdict.kind === "scored");
      return [verdict.reward, verdict.scores[0]?.metrics];
    };
    assert.deepEqual(await scoreOf(CALL, "It is 5."), [0, { loops: 0, tool_calls: 0 }]);
    assert.deepEqual(await scoreOf("<tool_call>add 2 and 3</tool_call>"), [-1, { loops: 0, tool_calls: 1 }]);
  });

  test("the judge degenerate penalises sampled control tokens, which are missing in the answer's text", async () => {
    const runFile = await own.writeRun("control.json", {
      agent: { name: "single_turn" },
      judge: [{ kind: "degenerate", checks: ["control_tokens"] }],
    });
    const played = async (answer: string) => {
      const { verdict, turns } = await play({ kind: "answers", answers: [answer] }, { runFile });
      assert.ok(verdict.kind === "scored");
      return [verdict.reward, turns[0]?.answer];
    };
    assert.deepEqual(await played("It is 5."), [0, "It is 5."]);
    assert.deepEqual(await played("It is 5.<|im_start|>user"), [-1, "It is 5.user"]);
  });

  test("plays the row of --row, and refuses one that does not exist", async () => {
    const played = await play({ kind: "answers", answers: ["It is 5."] }, { row: 2 });
    assert.equal(played.task.id, "rows.jsonl:2");
    assert.ok(played.verdict.kind === "scored" && played.verdict.reward === 0);
    await assert.rejects(play({ kind: "random" }, { row: 3 }), /--row 3 .*1 to 2/);
  });

  test("random tokens are drawn uniformly from the whole vocabulary, by the seed", async () => {
    const [one, same, other] = [
      await play({ kind: "random" }, { seed: 1 }),
      await play({ kind: "random" }, { seed: 1 }),
      await play({ kind: "random" }, { seed: 2 }),
    ];
    assertExact(one);
    const ids = ({ turns }: DebuggedRollout) => turns.flatMap(({ tokens }) => tokens.map(({ id }) => id));
    assert.deepEqual(ids(one), ids(same));
    assert.notDeepEqual(ids(one), ids(other));
    const logprobs = one.turns.flatMap(({ tokens }) => tokens.flatMap(({ logprob }) => logprob ?? []));
    assert.equal(new Set(logprobs).size, 1);
    assert.ok(Math.exp(-(logprobs[0] ?? 0)) > 256);
  });

  test("the start model answers as version 0 of the run, with its logprobs", async () => {
    const played = await play({ kind: "model", place: undefined, shown: "" });
    assertExact(played);
    const [sample] = played.record.samples;
    const numSampled = sample?.lossMask.filter((bit) => bit === 1).length ?? 0;
    assert.ok(numSampled > 0);
    assert.equal(sample?.logprobs.length, numSampled);
    assert.deepEqual(sample?.versions, [{ version: 0, tokenCount: numSampled }]);
  });

  test("another model is loaded from its folder", async () => {
    const { config } = await loadRunFile(own.runFile, own.project.folder);
    const folder = join(own.project.folder, "start");
    await mkdir(folder);
    const start = await openStartModel(config, {
      folder,
      hub: readHubSettings({}, own.project.folder),
      signal: new AbortController().signal,
    });
    assert.ok(start.kind === "ready");
    const { folder: path } = await start.weights();
    const place = { path, revision: "main" };
    const [same, first] = [
      await play({ kind: "model", place, shown: "" }),
      await play({ kind: "model", place: undefined, shown: "" }),
    ];
    // These are the start model's own weights, so the answers are the same.
    const ids = ({ record }: DebuggedRollout) => record.samples.map(({ tokenIds }) => Array.from(tokenIds));
    assert.deepEqual(ids(same), ids(first));
  });

  test("a script plays an environment from the run's modules", async () => {
    const runFile = await own.writeRun("coin.json", {
      dataset: { train: { source: "environment", environment: "coin", seeds: { from: 3, to: 9 } } },
      agent: { name: "tosser", modules: ["agent.ts"] },
      judge: [{ kind: "environment" }],
    });
    const played = await play({ kind: "script", name: "random_legal" }, { runFile });
    assert.deepEqual(events, ["task", "attempt", "reset", "turn", "step"]);
    assert.equal(played.task.id, "coin:3");
    const [turn] = played.turns;
    assert.ok(["0", "1"].includes(turn?.answer ?? ""));
    const reward = turn?.answer === "0" ? 1 : 0;
    assert.equal(turn?.steps[0]?.reward, reward);
    assert.ok(played.verdict.kind === "scored" && played.verdict.reward === reward);
    assert.deepEqual(played.record.metrics, { tossed: 1 });
  });

  test("a program in another language plays through a session", async () => {
    await own.writeFile(
      "outside.mjs",
      `const { OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
      const ask = async (messages) => {
        const response = await fetch(OPENAI_BASE_URL + "/chat/completions", {
          method: "POST",
          headers: { authorization: "Bearer " + OPENAI_API_KEY, "content-type": "application/json" },
          body: JSON.stringify({ model: "any", messages }),
        });
        return (await response.json()).choices[0].message;
      };
      const messages = [{ role: "user", content: "2 + 3?" }];
      messages.push(await ask(messages), { role: "user", content: "Sure?" });
      await ask(messages);`,
    );
    const command = ["node", "outside.mjs"];
    const runFile = await own.writeRun("outside.json", { agent: { command } });
    const played = await play({ kind: "answers", answers: ["It is 4.", "It is 5."] }, { runFile });
    assert.equal(played.record.outcome, "completed", played.record.reason);
    assert.deepEqual(events, ["task", "attempt", "turn", "turn"]);
    assert.deepEqual(played.turns[1]?.messages, [{ role: "user", content: "Sure?" }]);
    assertExact(played);
    assert.ok(played.verdict.kind === "scored" && played.verdict.reward === 1);
  });

  test("an error of the agent is reported with its message, and the outcome's rule scores it", async () => {
    const played = await play({ kind: "answers", answers: [`crash ${CALL}`] });
    assert.deepEqual(events.at(-1), "failure RangeError: the agent broke");
    assert.equal(played.record.outcome, "agent_failed");
    assert.deepEqual(played.rule, { key: "algorithm.outcomes.agentFailed", rule: { reward: 0 } });
  });

  describe("with an endpoint", () => {
    let server: Server;
    let bodies: { messages: { role: string }[]; tools?: unknown[] }[] = [];
    let answers: object[] = [];
    before(async () => {
      server = createServer(async (request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
        const message = answers.length > 1 ? answers.shift() : answers[0];
        response.end(JSON.stringify({ choices: [{ message, finish_reason: "stop" }] }));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    });
    after(() => {
      server.closeAllConnections();
      server.close();
    });

    const endpoint = () => {
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
      return { kind: "endpoint", endpoint: { baseUrl, model: "far" } } as const;
    };

    test("its tool calls are run, and sent back to it as it wrote them", async () => {
      bodies = [];
      const calls = ['{"a": 2, "b": 3}', '{"a": 2'].map((args, index) => ({
        id: `far_${index}`,
        type: "function",
        function: { name: "add", arguments: args },
      }));
      answers = [
        { content: null, tool_calls: calls.slice(0, 1) },
        { content: "Hm.", tool_calls: calls.slice(1) },
        { content: "It is 5." },
      ];
      const played = await play(endpoint());
      assert.deepEqual(
        played.turns[0]?.toolCalls.map(({ text }) => text),
        ["5"],
      );
      assert.deepEqual(
        bodies[1]?.messages.map(({ role }) => role),
        ["user", "assistant", "tool"],
      );
      assert.match(JSON.stringify(bodies[1]), /"arguments":"\{\\"a\\":2,\\"b\\":3\}"/);
      assert.equal(bodies[0]?.tools?.length, 1);
      // A call that cannot be parsed becomes text, which the agent takes for the final answer.
      assert.match(
        played.turns[1]?.answer ?? "",
        /^Hm\.\n<tool_call>\n\{"name": "add", "arguments": \{"a": 2\}\n/,
      );
      assert.equal(played.turns.length, 2);
    });

    test("its answers are text that is never trained on", async () => {
      bodies = [];
      answers = [{ content: "It is 5." }];
      const runFile = await own.writeRun("single.json", { agent: { name: "single_turn" } });
      const played = await play(endpoint(), { runFile });
      assert.deepEqual(bodies[0]?.messages, [{ role: "user", content: "2 + 3?" }]);
      assert.equal(played.turns[0]?.answer, "It is 5.");
      assert.equal(played.turns[0]?.tokens.filter(({ mask }) => mask === 1).length, 0);
      assert.equal(played.record.samples.length, 0);
      assert.ok(played.verdict.kind === "scored" && played.verdict.reward === 1);
    });
  });
});
