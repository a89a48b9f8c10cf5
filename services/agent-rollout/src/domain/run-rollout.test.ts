import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { before, describe, test } from "node:test";
import {
  AgentCatalog,
  AgentModules,
  type AgentRollout,
  type Environment,
  FinishReason,
  type GenerateCall,
  type Generation,
  InfrastructureError,
  type Policy,
  PolicyUnavailableError,
  register,
  registerEnvironment,
} from "@hone/agents";
import { delay, Outcome, TerminalError, turnSeed } from "@hone/core";
import { contextOfTraceparent } from "@hone/telemetry";
import { ChatRenderer, EncodingLimitError, loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";
import "./built-ins.ts";
import { Endpoints } from "./endpoints.ts";
import { RolloutCancelledError, ServiceStoppingError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";
import { runRollout } from "./run-rollout.ts";
import { SessionHost } from "./sessions/session-host.ts";
import { jobOf } from "./testing-rollout.ts";

const example = path.join(import.meta.dirname, "../../../../examples/01-frozen-lake");
let tokenizer: Tokenizer;
let renderer: ChatRenderer;

/** What the test's agents and environments do; each test sets its own. */
let behaveAgent: (rollout: AgentRollout<unknown>) => Promise<object> = async () => ({});
let makeTestEnvironment: () => Environment;
let environmentsMade = 0;
let environmentsClosed = 0;

register("test_agent", {
  configSchema: z.strictObject({ factor: z.number().default(1) }),
  needsEnvironment: false,
  buildGraph: () => ({}),
  run: (_graph, rollout) => behaveAgent(rollout),
});
registerEnvironment("test_environment", {
  configSchema: z.strictObject({}),
  create: () => {
    environmentsMade++;
    return makeTestEnvironment();
  },
});

before(async () => {
  tokenizer = await loadTokenizer(example);
  renderer = new ChatRenderer(tokenizer);
});

/** A policy that answers with a text, and remembers what it was asked. */
class TextPolicy implements Policy {
  readonly calls: GenerateCall[] = [];
  readonly #answer: (call: GenerateCall, index: number) => string | Promise<string>;

  constructor(answer: (call: GenerateCall, index: number) => string | Promise<string>) {
    this.#answer = answer;
  }

  async generate(call: GenerateCall): Promise<Generation> {
    const index = this.calls.push(call) - 1;
    const all = tokenizer.encode(`${await this.#answer(call, index)}<|end|>`);
    const tokenIds = all.slice(0, call.sampling.maxNewTokens);
    return {
      tokenIds,
      logprobs: tokenIds.map(() => -0.25),
      versions: [{ version: call.highestVersion, tokenCount: tokenIds.length }],
      finishReason: tokenIds.length === all.length ? FinishReason.stop : FinishReason.length,
      cachedTokens: 0,
      generationMs: 1,
      replica: "test",
    };
  }
}

const LEAN = {
  systemPrompt: "",
  instruction: "",
  promptTemplate: "{observation}\n{player_row}{player_column}",
};

function job(overrides: Partial<RolloutJob> = {}): RolloutJob {
  return jobOf({
    slot: { split: "train", step: 2, task: 3, index: 1 },
    task: { id: "lake:5", environment: { name: "frozen_lake", seed: 5, configJson: "{}" }, row: undefined },
    agentName: "frozen_lake",
    agentConfigJson: JSON.stringify({ ...LEAN, historyTurns: 0 }),
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 8 },
    limits: { maxTurns: 10, maxContextTokens: 512, deadlineMs: 10_000, maxAttempts: 3 },
    lowestVersion: 4,
    highestVersion: 4,
    ...overrides,
  });
}

const CONFIG_FILES: Readonly<Record<string, string>> = {
  "brief.yaml": JSON.stringify({ systemPrompt: "0" }),
};
const agentConfigAt = async (file: string): Promise<string> => {
  const json = CONFIG_FILES[file];
  if (json === undefined) throw new TerminalError("NO_FILE", `no file ${file}`);
  return json;
};

function run(
  asked: RolloutJob,
  policy: Policy,
  signal: AbortSignal = new AbortController().signal,
  endpoints = new Endpoints({}),
) {
  return runRollout(
    asked,
    {
      policy,
      agents: new AgentCatalog({ filesFolder: import.meta.dirname }),
      modules: new AgentModules(import.meta.dirname),
      rendererOf: async () => renderer,
      endpoints,
      sessions: new SessionHost("http://127.0.0.1:1"),
      agentConfigAt,
    },
    { signal, trace: contextOfTraceparent(undefined) },
  );
}

const always = (text: string) => new TextPolicy(() => text);
const testJob = (limits: Partial<RolloutJob["limits"]> = {}) =>
  job({
    agentName: "test_agent",
    agentConfigJson: undefined,
    task: { id: "row:1", environment: undefined, row: { question: "00" } },
    limits: { ...job().limits, ...limits },
  });

describe("the agent single_turn", () => {
  const rowJob = (row: Record<string, unknown>, overrides: Partial<RolloutJob> = {}) =>
    job({
      agentName: "single_turn",
      agentConfigJson: undefined,
      task: { id: "rows.jsonl:1", environment: undefined, row },
      ...overrides,
    });
  const shown = (policy: TextPolicy) => tokenizer.decode(policy.calls[0]!.promptIds);

  test("renders the row's prompt by the chat template and answers once", async () => {
    const policy = always("1,1");
    const prompt = [
      { role: "system", content: "0" },
      { role: "user", content: "1-1" },
    ];
    const record = await run(rowJob({ prompt }), policy);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(shown(policy), "<|system|>0<|user|>1-1<|assistant|>");
    assert.deepEqual(
      record.turns.map(({ responseText }) => responseText),
      ["1,1"],
    );
    assert.equal(policy.calls.length, 1);
  });

  test("takes a text as the user's message, and says when the answer was cut off", async () => {
    const policy = always("1".repeat(40));
    const record = await run(rowJob({ prompt: "2,2" }), policy);
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(shown(policy), "<|user|>2,2<|assistant|>");
  });

  test("a row's agent and its file win over those of the run", async () => {
    const policy = always("1");
    const row = { prompt: "1", agent_name: "single_turn", agent_cfg_path: "brief.yaml" };
    const asked = rowJob(row, { agentName: "test_agent", agentConfigJson: '{"factor":2}' });
    assert.equal((await run(asked, policy)).outcome, Outcome.completed);
    assert.equal(shown(policy), "<|system|>0<|user|>1<|assistant|>");
  });

  test("a row's agent does not take the configuration of the run's own", async () => {
    const asked = rowJob(
      { prompt: "1", agent_name: "single_turn" },
      { agentName: "test_agent", agentConfigJson: '{"factor":2}' },
    );
    assert.equal((await run(asked, always("1"))).outcome, Outcome.completed);
  });

  for (const [what, row, reason] of [
    ["without a prompt", { question: "1" }, /`prompt` must be/],
    ["that names an unknown agent", { prompt: "1", agent_name: "single_trun" }, /did you mean "single_turn"/],
    ["that names a missing file", { prompt: "1", agent_cfg_path: "none.yaml" }, /no file none.yaml/],
  ] as const) {
    test(`a row ${what} is never scored, and tried once`, async () => {
      const policy = always("1");
      const record = await run(rowJob(row), policy);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, reason);
      assert.deepEqual(record.failedAttempts, []);
      assert.equal(policy.calls.length, 0);
    });
  }
});

describe("a model behind an OpenAI-compatible API", () => {
  /** Answers with what the test says, status by status, and keeps what it was asked. */
  async function startApi(answers: { status?: number; content?: string | null; finish?: string }[]) {
    const asked: { key: string | undefined; url: string | undefined; body: Record<string, unknown> }[] = [];
    const server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += String(chunk);
      const { status = 200, content = "1", finish = "stop" } = answers[asked.length] ?? {};
      asked.push({ key: request.headers.authorization, url: request.url, body: JSON.parse(text) });
      response.writeHead(status, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ choices: [{ message: { role: "assistant", content }, finish_reason: finish }] }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return {
      asked,
      baseUrl: `http://127.0.0.1:${port}/v1/`,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }
  const endpointJob = (baseUrl: string, row: Record<string, unknown>) =>
    job({
      agentName: "single_turn",
      agentConfigJson: undefined,
      task: { id: "rows.jsonl:1", environment: undefined, row },
      endpoint: { baseUrl, model: "outside", keyVariable: "HONE_ENDPOINT_KEY", concurrency: 2 },
    });
  const runOutside = (baseUrl: string, row: Record<string, unknown> = { prompt: "2,2" }) =>
    run(
      endpointJob(baseUrl, row),
      always("never asked"),
      undefined,
      new Endpoints({ HONE_ENDPOINT_KEY: "k" }),
    );

  test("is asked for text; the record has turns and no tokens", async () => {
    await using api = await startApi([{ content: "1,1" }]);
    const record = await runOutside(api.baseUrl);
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(record.samples, []);
    const [turn] = record.turns;
    assert.deepEqual([turn?.responseText, turn?.sampledBegin, turn?.sampledEnd], ["1,1", 0, 0]);
    assert.deepEqual(record.metadata.endpoint, { baseUrl: api.baseUrl, model: "outside" });
    const [{ key, url, body } = assert.fail("not asked")] = api.asked;
    assert.deepEqual([key, url], ["Bearer k", "/v1/chat/completions"]);
    const { messages, model, max_tokens: maxTokens } = body;
    assert.deepEqual(messages, [{ role: "user", content: "2,2" }]);
    assert.deepEqual([model, maxTokens], ["outside", job().sampling.maxNewTokens]);
  });

  test("that cuts its answer off is truncated, as any model", async () => {
    await using api = await startApi([{ content: "1", finish: "length" }]);
    assert.equal((await runOutside(api.baseUrl)).outcome, Outcome.truncated);
  });

  test("that is busy is asked again; one that refuses is no reward", async () => {
    await using api = await startApi([{ status: 429 }, { status: 503 }, { content: "1" }]);
    assert.equal((await runOutside(api.baseUrl)).outcome, Outcome.completed);
    assert.equal(api.asked.length, 3);
    await using closed = await startApi([{ status: 401 }]);
    const record = await runOutside(closed.baseUrl);
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /status 401/);
    assert.equal(closed.asked.length, 1);
  });

  test("whose key is missing ends the rollout with the variable's name", async () => {
    const record = await run(endpointJob("http://127.0.0.1:1/v1", { prompt: "1" }), always(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /HONE_ENDPOINT_KEY/);
  });
});

describe("the agent frozen_lake", () => {
  test("shows each turn as a prompt of its own where it has no history", async () => {
    const policy = always("<answer>Nowhere</answer>");
    const { outcome, samples, turns, metrics } = await run(job(), policy);
    assert.equal(outcome, Outcome.truncated);
    assert.equal(turns.length, 10);
    assert.equal(samples.length, 10);
    for (const call of policy.calls) assert.equal(call.promptIds.length, 1 + 19 + 1 + 2 + 1);
    assert.deepEqual(metrics, { success: 0, action_is_valid: 0, action_is_effective: 0 });
  });

  test("keeps one growing sample where it shows all turns", async () => {
    const policy = always("<answer>Nowhere</answer>");
    const asked = job({ agentConfigJson: JSON.stringify({ ...LEAN, historyTurns: null }) });
    const { samples, turns } = await run(asked, policy);
    assert.equal(samples.length, 1);
    for (const [index, turn] of turns.entries()) {
      const seen = Array.from(samples[0]!.tokenIds).slice(0, turn.sampledBegin);
      assert.deepEqual(seen, [...policy.calls[index]!.promptIds]);
    }
  });

  test("shows as many earlier turns as its configuration says", async () => {
    const policy = always("<answer>Nowhere</answer>");
    const asked = job({ agentConfigJson: JSON.stringify({ ...LEAN, historyTurns: 2 }) });
    await run(asked, policy);
    const shown = policy.calls.map(
      ({ promptIds }) => promptIds.filter((id) => id === tokenizer.tokenId("<|user|>")).length,
    );
    assert.deepEqual(shown, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
  });

  test("puts ROLL's instruction before the first prompt only", async () => {
    const policy = always("<answer>Nowhere</answer>");
    const asked = job({
      agentConfigJson: JSON.stringify({
        systemPrompt: "0",
        instruction: "1-1",
        promptTemplate: "{turn},{actionsLeft}",
        historyTurns: null,
      }),
      limits: { ...job().limits, maxTurns: 2 },
    });
    await run(asked, policy);
    const second = tokenizer.decode(policy.calls[1]!.promptIds);
    assert.ok(second.startsWith("<|system|>0<|user|>1-1\n1,2<|assistant|>"));
    assert.ok(second.endsWith("<|user|>2,1<|assistant|>"));
  });

  test("random legal moves need no model, and say that no policy sampled them", async () => {
    const policy = always("never asked");
    let successes = 0;
    for (let seed = 0; seed < 60; seed++) {
      const task = {
        id: `lake:${seed}`,
        environment: { name: "frozen_lake", seed, configJson: "{}" },
        row: undefined,
      };
      const asked = job({ scriptedPolicy: "random_legal", task, slot: { ...job().slot, task: seed } });
      const record = await run(asked, policy);
      assert.deepEqual(record.metadata, { scriptedPolicy: "random_legal" });
      assert.equal(record.metrics.action_is_effective, 1);
      assert.ok(
        record.samples.every(({ logprobs, versions }) => logprobs.length === 0 && versions.length === 0),
      );
      assert.deepEqual(await run(asked, policy).then(({ samples }) => samples), record.samples);
      successes += record.metrics.success!;
    }
    assert.equal(policy.calls.length, 0);
    assert.ok(successes > 5 && successes < 30, `${successes}`);
  });

  test("reports rewards and info turn by turn, and their sum", async () => {
    const seed = 5;
    const policy = new TextPolicy((_call, index) => (index === 0 ? "?" : "<answer>Down</answer>"));
    const configJson = JSON.stringify({ formatPenalty: -0.5, maxSteps: 2 });
    const record = await run(
      job({ task: { id: "l", environment: { name: "frozen_lake", seed, configJson }, row: undefined } }),
      policy,
    );
    assert.equal(record.turns[0]!.reward, -0.5);
    assert.equal(record.turns[0]!.info!.action_is_valid, false);
    assert.equal(record.turns[1]!.info!.action, "Down");
    assert.equal(
      record.environmentReturn,
      record.turns.reduce((sum, { reward }) => sum + reward!, 0),
    );
  });
});

describe("runRollout()", () => {
  test("samples with seeds of run seed, slot and turn, for the group and the versions of its job", async () => {
    const policy = always("<answer>Nowhere</answer>");
    await run(job(), policy);
    const { slot } = job();
    assert.deepEqual(
      policy.calls.map(({ seed }) => seed),
      policy.calls.map((_, turn) => turnSeed(7, slot, turn)),
    );
    for (const call of policy.calls) {
      assert.equal(call.groupId, "run-1/train.2.3");
      assert.deepEqual([call.lowestVersion, call.highestVersion], [4, 4]);
      assert.deepEqual(call.stopTokenIds, tokenizer.stopTokenIds);
    }
  });

  test("makes an attempt again, in a fresh environment and with the same seeds, after a failure outside the agent", async () => {
    let failures = 2;
    makeTestEnvironment = () => ({
      reset: () => ({ observation: "0", info: {} }),
      step: () => {
        if (failures-- > 0) throw new InfrastructureError("step", "the server must answer", "503");
        return { observation: "1", info: {}, reward: 2, terminated: true, truncated: false };
      },
      metrics: () => ({ steps: 1 }),
      close: () => void environmentsClosed++,
    });
    behaveAgent = async ({ model, environment }) => {
      const { observation } = await environment!.reset();
      const { text } = await model.invoke([new HumanMessage(observation)]);
      await environment!.step(text);
      return { metrics: { answers: 1 }, metadata: { last: text } };
    };
    environmentsMade = 0;
    environmentsClosed = 0;
    const policy = always("3");
    const asked = {
      ...testJob(),
      task: { id: "e", environment: { name: "test_environment", seed: 1, configJson: "" }, row: undefined },
    };
    const record = await run(asked, policy);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.attempt, 3);
    assert.equal(record.failedAttempts.length, 2);
    assert.match(record.failedAttempts[0]!, /the server must answer/);
    assert.deepEqual(record.metrics, { steps: 1, answers: 1 });
    assert.deepEqual(record.metadata, { last: "3" });
    assert.equal(record.environmentReturn, 2);
    assert.equal(record.turns.length, 1);
    assert.equal(environmentsMade, 3);
    assert.equal(environmentsClosed, 3);
    assert.equal(new Set(policy.calls.map(({ seed }) => seed)).size, 1);
    assert.equal(new Set(policy.calls.map(({ sessionId }) => sessionId)).size, 3);
  });

  test("ends as infra_failed when every attempt failed outside the agent, even if the agent hides it", async () => {
    makeTestEnvironment = () => ({
      reset: () => {
        throw new InfrastructureError("reset", "the server must answer", "503");
      },
      step: () => assert.fail(),
      metrics: () => ({}),
    });
    behaveAgent = async ({ environment }) => {
      await environment!.reset().catch(() => undefined);
      return { metrics: { success: 1 } };
    };
    const asked = {
      ...testJob({ maxAttempts: 2 }),
      task: { id: "e", environment: { name: "test_environment", seed: 1, configJson: "" }, row: undefined },
    };
    const record = await run(asked, always(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.equal(record.attempt, 2);
    assert.equal(record.failedAttempts.length, 1);
  });

  test("an agent that throws has failed, once and for all", async () => {
    behaveAgent = async () => {
      throw new RangeError("off by one");
    };
    const record = await run(testJob(), always(""));
    assert.equal(record.outcome, Outcome.agentFailed);
    assert.equal(record.reason, "test_agent: off by one");
    assert.equal(record.attempt, 1);
  });

  test("a tokenizer whose expressions do not come to an end is never scored, and tried once", async () => {
    let attempts = 0;
    behaveAgent = async () => {
      attempts++;
      throw new EncodingLimitError("5000 ms", "more for a text of 60 characters");
    };
    const record = await run(testJob(), always(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /regular expressions of its tokenizer may take 5000 ms/);
    assert.equal(attempts, 1);
  });

  test("an agent that never comes back is timed out, and its signal aborts", async () => {
    let aborted: AbortSignal | undefined;
    behaveAgent = ({ signal }) => {
      aborted = signal;
      return new Promise(() => undefined);
    };
    const record = await run(testJob({ deadlineMs: 30 }), always(""));
    assert.equal(record.outcome, Outcome.timedOut);
    assert.ok(aborted!.aborted);
    assert.ok(record.durationMs >= 29 && record.durationMs < 5_000);
  });

  test("waiting for the policy costs the attempt no time", async () => {
    behaveAgent = async ({ model }) => {
      await model.invoke([new HumanMessage("0")]);
      return {};
    };
    const slow = new TextPolicy(async () => {
      await delay(150);
      return "1";
    });
    const record = await run(testJob({ deadlineMs: 100 }), slow);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.generationMs, 1);
    assert.ok(record.durationMs < 100);
  });

  test("one call more than the turns allowed truncates, even if the agent hides it", async () => {
    behaveAgent = async ({ model }) => {
      for (let call = 0; call < 5; call++)
        await model.invoke([new HumanMessage(`${call}`)]).catch(() => undefined);
      return { metrics: { done: 1 } };
    };
    const record = await run(testJob({ maxTurns: 3 }), always("1"));
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.turns.length, 3);
    assert.match(record.reason, /most turns/);
    assert.deepEqual(record.metrics, { done: 1 });
  });

  test("a full context truncates, and the answer before it is cut to what fits", async () => {
    behaveAgent = async ({ model }) => {
      const first = new HumanMessage("0000");
      const answer = await model.invoke([first]);
      await model.invoke([first, answer, new HumanMessage("1")]);
      return {};
    };
    const record = await run(testJob({ maxContextTokens: 9 }), always("22222"));
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.turns.length, 1);
    assert.equal(record.turns[0]!.finishReason, FinishReason.length);
    assert.equal(record.samples[0]!.tokenIds.length, 9);
  });

  test("a message carries its token ids, logprobs and place in the record", async () => {
    let metadata: Record<string, unknown> = {};
    behaveAgent = async ({ model, task }) => {
      const answer = await model.invoke(String(task.row!.question));
      metadata = answer.response_metadata;
      return {};
    };
    await run(testJob(), always("12"));
    const tokenIds = [...tokenizer.encode("12<|end|>")];
    assert.deepEqual(metadata.tokenIds, tokenIds);
    assert.deepEqual(metadata.logprobs, [-0.25, -0.25, -0.25]);
    assert.deepEqual([metadata.turn, metadata.sample, metadata.finishReason], [0, 0, "stop"]);
  });

  test("a cancelled rollout ends as cancelled, a stopping service gives it back", async () => {
    behaveAgent = () => new Promise(() => undefined);
    const cancelling = new AbortController();
    const cancelled = run(testJob(), always(""), cancelling.signal);
    cancelling.abort(new RolloutCancelledError("run-1"));
    assert.equal((await cancelled).outcome, Outcome.cancelled);
    const stopping = new AbortController();
    const given = run(testJob(), always(""), stopping.signal);
    stopping.abort(new ServiceStoppingError());
    await assert.rejects(given, ServiceStoppingError);
  });

  test("a policy that stays away gives the rollout back, and no attempt is counted", async () => {
    behaveAgent = async ({ model }) => {
      await model.invoke([new HumanMessage("0")]);
      return {};
    };
    const away: Policy = {
      generate: async () => {
        throw new PolicyUnavailableError("none is known", 600_000);
      },
    };
    await assert.rejects(run(testJob(), away), PolicyUnavailableError);
  });

  test("what does not go together is infra_failed with the reason, at once", async () => {
    const noEnvironment = { id: "r", environment: undefined, row: {} };
    for (const [overrides, reason] of [
      [{ agentName: "frozen_lack" }, /did you mean "frozen_lake"/],
      [{ agentConfigJson: '{"historyTurn":1}' }, /agent\.historyTurn/],
      [{ scriptedPolicy: "random_leagl" }, /scripted policy must be known/],
      [{ task: noEnvironment }, /needs a task with an environment/],
      [
        { task: { ...noEnvironment, environment: { name: "pond", seed: 1, configJson: "" } } },
        /environment must be known/,
      ],
      [
        {
          task: { ...noEnvironment, environment: { name: "frozen_lake", seed: 1, configJson: '{"size":1}' } },
        },
        /size/,
      ],
    ] as const) {
      const record = await run(job(overrides), always(""));
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, reason);
    }
  });
});
