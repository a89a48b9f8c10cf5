import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type AgentSession, register } from "@hone/agents";
import {
  type Bus,
  connectBus,
  ensureTopology,
  publishStored,
  readOrdered,
  StreamName,
  subjects,
} from "@hone/messaging";
import type { GenerateRequest } from "@hone/proto-gen/policy";
import {
  type Episode,
  EpisodeSchema,
  Outcome,
  type RolloutJob,
  RolloutJobSchema,
} from "@hone/proto-gen/rollout";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, startNats } from "@hone/testing";
import { loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import { z } from "zod";
import { readConfig } from "./config.ts";
import { agentRolloutService } from "./service.ts";
import { type Behaviour, FakeGateway } from "./testing-gateway.ts";

/** An agent that opens a session, and leaves the rest to the test. */
interface Held {
  readonly session: AgentSession;
  readonly end: (metadata?: Record<string, unknown>) => void;
}
const waiting = new Map<string, (held: Held) => void>();
register("held", {
  configSchema: z.strictObject({
    roles: z.record(z.string(), z.strictObject({ learn: z.boolean() })).optional(),
    takesRewards: z.boolean().default(false),
  }),
  needsEnvironment: false,
  buildGraph: () => undefined,
  async run(_graph, { openSession, task, config }) {
    const over = Promise.withResolvers<Record<string, unknown>>();
    waiting.get(task.id)?.({
      session: openSession({ roles: config.roles, takesRewards: config.takesRewards }),
      end: (metadata = {}) => over.resolve(metadata),
    });
    return { metadata: await over.promise };
  },
});

const examples = path.join(import.meta.dirname, "../../../examples");
const SAY = `
  const say = async (messages) => {
    const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
      method: "POST",
      headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
      body: JSON.stringify({ model: "any", messages }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()).choices[0].message;
  };`;

describe("sessions of agent-rollout", { timeout: 180_000 }, () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  let bus: Bus;
  let tokenizer: Tokenizer;
  let service: RunningService;
  const gateways: FakeGateway[] = [];

  before(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "sessions-test" });
    await ensureTopology(bus);
    tokenizer = await loadTokenizer(path.join(examples, "01-frozen-lake"));
    service = await startService(agentRolloutService, {
      config: readConfig({
        HONE_NATS_URL: nats.url,
        HONE_STATE_DIR: examples,
        HONE_FILES: tmpdir(),
        HONE_AGENT_COMMANDS: "allow",
        PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}`,
      }),
      logger: silentLogger(),
    });
  });
  after(async () => {
    await service.stop();
    for (const gateway of gateways) await gateway.stop();
    await bus.close();
    await nats.stop();
  });

  const answer = (text: string): Behaviour => ({
    kind: "stream",
    tokenIds: tokenizer.encode(`${text}<|end|>`),
  });
  const gatewayFor = async (
    model: string,
    behave: (request: GenerateRequest) => Behaviour | Promise<Behaviour> = () => answer("01"),
  ) => {
    const gateway = new FakeGateway(bus, { model, replica: "one", behave });
    gateways.push(gateway);
    await gateway.report();
    return gateway;
  };
  const submit = (
    runId: string,
    agentName: string,
    config: object,
    limits: Partial<RolloutJob["limits"]> = {},
    task = 0,
  ) =>
    publishStored(
      bus,
      subjects.rolloutJob(runId),
      RolloutJobSchema,
      create(RolloutJobSchema, {
        runId,
        slot: { split: "train", step: 1, task, index: 0 },
        runSeed: 7n,
        task: { id: `${runId}:${task}`, rowJson: JSON.stringify({ prompt: "0123" }) },
        agentName,
        agentConfigJson: JSON.stringify(config),
        sampling: { temperature: 1, topP: 1, maxNewTokens: 16 },
        limits: {
          maxTurns: 10,
          maxContextTokens: 256,
          deadlineMs: 60_000,
          maxAttempts: 3,
          ...limits,
        } as RolloutJob["limits"] & object,
        judgesJson: "[]",
        tokenizerDigest: tokenizer.digest,
        tokenizerPath: "01-frozen-lake",
      }),
    );
  const episodeOf = async (runId: string): Promise<Episode> => {
    const stop = new AbortController();
    const options = {
      stream: StreamName.episodes,
      filter: subjects.rolloutFinished(runId),
      fromSequence: 1,
      signal: stop.signal,
    };
    for await (const { message } of readOrdered(bus, EpisodeSchema, options)) {
      stop.abort();
      return message;
    }
    throw new Error("no episode");
  };
  /** Starts a rollout whose session the test speaks through. */
  const hold = async (runId: string, config: object = {}, limits: Partial<RolloutJob["limits"]> = {}) => {
    const { promise, resolve } = Promise.withResolvers<Held>();
    waiting.set(`${runId}:0`, resolve);
    await submit(runId, "held", config, limits);
    return promise;
  };
  const post = (
    { url, key }: AgentSession,
    body: unknown,
    options: { at?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ) =>
    fetch(`${url}${options.at ?? "/v1/chat/completions"}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...options.headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(options.signal !== undefined && { signal: options.signal }),
    });
  const asked = (content = "0123", extra: object = {}) => ({
    model: "any",
    messages: [{ role: "user", content }],
    ...extra,
  });
  const failureOf = async (response: Response) => {
    const { error } = (await response.json()) as { error: { message: string; code: string | null } };
    return { status: response.status, code: error.code, message: error.message };
  };

  test("a conversation is one sample whose tokens go on verbatim, streamed or not", async () => {
    const gateway = await gatewayFor("s-record");
    const { session, end } = await hold("s-record");
    const first = (await (await post(session, asked("01", { return_token_ids: true }))).json()) as {
      choices: { message: { content: string }; token_ids: number[] }[];
      prompt_token_ids: number[];
    };
    const { message } = first.choices[0]!;
    const stream = await post(
      session,
      {
        model: "any",
        messages: [{ role: "user", content: "01" }, message, { role: "user", content: "23" }],
        stream: true,
      },
      { headers: { authorization: "", "x-api-key": session.key } },
    );
    assert.equal(stream.headers.get("content-type"), "text/event-stream");
    const chunks = (await stream.text())
      .split("\n\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice("data: ".length)));
    assert.equal(chunks.map(({ choices }) => choices[0].delta.content ?? "").join(""), message.content);
    assert.ok(chunks.length > 3, "tokens come one by one");
    end({ answer: 1 });
    const episode = await episodeOf("s-record");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.samples.length, 1);
    const [sample] = episode.samples;
    const [, second] = gateway.requests;
    assert.deepEqual(sample!.tokenIds.slice(0, second!.promptIds.length), second!.promptIds);
    assert.deepEqual(second!.promptIds.slice(0, first.prompt_token_ids.length), first.prompt_token_ids);
    const made = first.prompt_token_ids.length + first.choices[0]!.token_ids.length;
    assert.deepEqual(
      second!.promptIds.slice(first.prompt_token_ids.length, made),
      first.choices[0]!.token_ids,
    );
    assert.equal(episode.metrics.session_calls, 2);
    assert.equal(episode.metrics.drift_branch, 0);
  });

  test("another way from an earlier point is a sample of its own, told in the metrics and the turn", async () => {
    await gatewayFor("s-branch");
    const { session, end } = await hold("s-branch");
    for (let i = 0; i < 2; i++) assert.equal((await post(session, asked("01"))).status, 200);
    end();
    const episode = await episodeOf("s-branch");
    assert.equal(episode.samples.length, 2);
    assert.equal(episode.metrics.drift_branch, 1);
    assert.deepEqual(JSON.parse(episode.turns[1]!.infoJson), { drift: "branch" });
  });

  test("a credential opens its own session, while that is open, and no other", async () => {
    await gatewayFor("s-one");
    await gatewayFor("s-other");
    const one = await hold("s-one");
    const other = await hold("s-other");
    const { key, url } = one.session;
    const wrong: [AgentSession, Record<string, string>, number, string][] = [
      [{ ...one.session, key: other.session.key }, {}, 401, "invalid_api_key"],
      [{ ...one.session, url: other.session.url }, {}, 401, "invalid_api_key"],
      [one.session, { authorization: "" }, 401, "invalid_api_key"],
      [{ ...one.session, key: `${key}x` }, {}, 401, "invalid_api_key"],
      [
        { ...one.session, url: `${url.slice(0, -1)}${url.endsWith("0") ? "1" : "0"}` },
        {},
        404,
        "session_over",
      ],
    ];
    for (const [session, headers, status, code] of wrong) {
      for (const at of ["/v1/chat/completions", "/rewards"]) {
        const failure = await failureOf(await post(session, asked(), { headers, at }));
        assert.deepEqual([failure.status, failure.code], [status, code]);
      }
    }
    one.end();
    other.end();
    assert.equal((await episodeOf("s-one")).turns.length, 0);
    assert.equal((await episodeOf("s-other")).turns.length, 0);
    await eventually("the end of the session", async () => (await post(one.session, asked())).status === 404);
  });

  test("a client that goes away ends its generation, and the record says so", async () => {
    const gateway = await gatewayFor("s-gone", () => ({ kind: "heartbeats", queuePosition: 0 }));
    const { session, end } = await hold("s-gone");
    for (const stream of [false, true]) {
      const client = new AbortController();
      const count = gateway.requests.length;
      const asking = post(session, asked("01", { stream }), { signal: client.signal }).then((response) =>
        response.text(),
      );
      asking.catch(() => undefined);
      await eventually("the request", () => gateway.requests.length > count);
      client.abort();
      const { requestId } = gateway.requests.at(-1)!;
      await eventually("the end of the generation", () => gateway.aborted.includes(requestId));
    }
    end();
    const episode = await episodeOf("s-gone");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.deepEqual(
      episode.turns.map(({ finishReason }) => finishReason),
      ["aborted", "aborted"],
    );
    assert.equal(episode.samples.length, 0);
    assert.equal(episode.metrics.session_abandoned, 2);
  });

  test("a stop text ends the generation, and the record holds what was sampled up to it", async () => {
    await gatewayFor("s-stop", () => answer("0123"));
    const { session, end } = await hold("s-stop");
    const body = (await (await post(session, asked("01", { stop: "2" }))).json()) as {
      choices: { message: { content: string }; finish_reason: string }[];
      usage: { completion_tokens: number };
    };
    assert.equal(body.choices[0]?.message.content, "01");
    assert.equal(body.choices[0]?.finish_reason, "stop");
    end();
    const { samples, turns } = await episodeOf("s-stop");
    const { sampledBegin, sampledEnd, finishReason } = turns[0]!;
    assert.equal(finishReason, "stop_text");
    assert.equal(tokenizer.decode(samples[0]!.tokenIds.slice(sampledBegin, sampledEnd)), "012");
    assert.equal(body.usage.completion_tokens, sampledEnd - sampledBegin);
  });

  test("rewards are taken where the run says so, and nowhere else", async () => {
    await gatewayFor("s-none");
    await gatewayFor("s-rewards");
    const none = await hold("s-none");
    await post(none.session, asked());
    const refused = await failureOf(await post(none.session, { value: 1 }, { at: "/rewards" }));
    assert.deepEqual([refused.status, refused.code], [403, "rewards_not_taken"]);
    none.end();
    assert.equal((await episodeOf("s-none")).environmentReturn, 0);

    const { session, end } = await hold("s-rewards", { takesRewards: true });
    assert.equal((await post(session, { value: 1 }, { at: "/rewards" })).status, 400, "no turn yet");
    await post(session, asked());
    for (const body of [{ value: 0.5 }, { value: 0.25, turn: 0 }]) {
      assert.equal((await post(session, body, { at: "/rewards" })).status, 200);
    }
    assert.equal((await post(session, { value: "1" }, { at: "/rewards" })).status, 400);
    end();
    const episode = await episodeOf("s-rewards");
    assert.equal(episode.environmentReturn, 0.75);
    assert.equal(episode.turns[0]?.reward, 0.75);
  });

  test("what a role says that does not learn is not trained", async () => {
    await gatewayFor("s-roles");
    const { session, end } = await hold("s-roles", {
      roles: { solver: { learn: true }, critic: { learn: false } },
    });
    const solver = { ...asked("01"), model: "solver" };
    assert.equal((await post(session, solver)).status, 200);
    assert.equal((await post(session, asked("23"), { at: "/roles/critic/v1/chat/completions" })).status, 200);
    const unknown = await failureOf(await post(session, { ...asked(), model: "solvr" }));
    assert.deepEqual([unknown.status, unknown.code], [404, "model_not_found"]);
    assert.match(unknown.message, /solver, critic \(did you mean "solver"\?\)/);
    end();
    const { samples, turns } = await episodeOf("s-roles");
    assert.equal(samples.length, 1);
    assert.deepEqual(
      turns.map(({ sample, infoJson }) => [sample, JSON.parse(infoJson).role]),
      [
        [0, "solver"],
        [1, "critic"],
      ],
    );
  });

  test("what is wrong with a call is told, and does not end the rollout", async () => {
    await gatewayFor("s-wrong");
    const { session, end } = await hold("s-wrong", {}, { maxContextTokens: 40, maxTurns: 2 });
    const wrong: [unknown, number][] = [
      ["{", 400],
      [{ messages: [] }, 400],
      [asked("x".repeat(5_000_000)), 413],
      [asked("0".repeat(100)), 400],
    ];
    for (const [body, status] of wrong) assert.equal((await post(session, body)).status, status);
    assert.equal((await post(session, asked(), { at: "/v1/nothing" })).status, 404);
    assert.equal((await post(session, asked("01"))).status, 200, "a shorter one goes through");
    end();
    assert.equal((await episodeOf("s-wrong")).outcome, Outcome.COMPLETED);
  });

  const commandOf = (script: string) => ({ command: ["node", "--input-type=module", "-e", SAY + script] });

  test("a command plays the rollout with what its environment says, and leaves a result", async () => {
    await gatewayFor("s-command");
    await submit(
      "s-command",
      "command",
      commandOf(`
        import { writeFileSync } from "node:fs";
        const task = JSON.parse(process.env.HONE_TASK);
        const messages = [...task.prompt];
        for (const next of ["23", "01"]) messages.push(await say(messages), { role: "user", content: next });
        console.log("done");
        const names = Object.keys(process.env).filter((name) => /NATS|SECRET|HONE_ENDPOINT/.test(name));
        writeFileSync(process.env.HONE_RESULT_FILE, JSON.stringify({ answer: "42", names, metrics: { tries: 2 } }));
      `),
    );
    const episode = await episodeOf("s-command");
    assert.equal(episode.reason, "");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.samples.length, 1);
    assert.equal(episode.metrics.tries, 2);
    assert.deepEqual(JSON.parse(episode.metadataJson), { answer: "42", names: [], stdout: "done\n" });
  });

  test("a command that fails is the agent's failure, one that is killed is not", async () => {
    await gatewayFor("s-exit");
    await submit("s-exit", "command", commandOf('console.error("lost my way"); process.exit(3);'));
    const failed = await episodeOf("s-exit");
    assert.equal(failed.outcome, Outcome.AGENT_FAILED);
    assert.match(failed.reason, /exit code 3; it said: lost my way/);
    assert.equal(failed.attempt, 1);

    const marker = path.join(tmpdir(), `hone-killed-${process.pid}`);
    await gatewayFor("s-killed");
    await submit(
      "s-killed",
      "command",
      commandOf(`
        import { existsSync, writeFileSync } from "node:fs";
        if (!existsSync(${JSON.stringify(marker)})) {
          writeFileSync(${JSON.stringify(marker)}, "");
          process.kill(process.pid, "SIGKILL");
        }
        await say([{ role: "user", content: "01" }]);
      `),
    );
    const killed = await episodeOf("s-killed");
    await rm(marker);
    assert.equal(killed.outcome, Outcome.COMPLETED);
    assert.equal(killed.attempt, 2);
    assert.match(killed.failedAttempts[0] ?? "", /SIGKILL/);
    assert.equal(killed.samples.length, 1);
  });

  test("a command ends with its attempt, and all that it started", async () => {
    const file = path.join(tmpdir(), `hone-late-${process.pid}`);
    await gatewayFor("s-late");
    const command = ["sh", "-c", `sleep 600 & echo $! > ${file}.new; mv ${file}.new ${file}; wait`];
    await submit("s-late", "command", { command }, { deadlineMs: 1_500 });
    const episode = await episodeOf("s-late");
    assert.equal(episode.outcome, Outcome.TIMED_OUT);
    const pid = Number(await readFile(file, "utf8"));
    await rm(file);
    await eventually("the end of what it started", () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  });
});
