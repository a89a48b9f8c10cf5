import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type AgentSession, register } from "@hone/agents";
import { BucketName, openBucket, RewardGiver, respond, subjects } from "@hone/messaging";
import {
  GivenRewardSchema,
  RewardReplySchema,
  type RewardRequest,
  RewardRequestSchema,
  RewardResult,
} from "@hone/proto-gen/judge";
import { Outcome } from "@hone/proto-gen/rollout";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { z } from "zod";
import type { FakeGatewayOptions } from "./testing/fake-gateway.ts";
import { type JobFields, LIMITS, RolloutWorld } from "./testing/rollout-world.ts";

/** A rollout whose agent opens a session and leaves the rest to the test. */
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

describe("sessions of agent-rollout", { timeout: 180_000 }, () => {
  let world: RolloutWorld;

  before(async () => {
    world = await RolloutWorld.open();
    await world.startService();
  });
  after(() => world?.close());

  const gatewayFor = (
    model: string,
    behave: FakeGatewayOptions["behave"] = () => world.answer("01", "stream"),
  ) => world.gateway({ model, replica: "one", behave });
  /** Starts a rollout whose session the test uses. */
  const hold = async (runId: string, config: object = {}, fields: JobFields = {}) => {
    const { promise, resolve } = Promise.withResolvers<Held>();
    const id = `${runId}:0`;
    waiting.set(id, resolve);
    const agent = { agentName: "held", agentConfigJson: JSON.stringify(config) };
    await world.submit(world.job(runId, { task: { id, rowJson: '{"prompt":"0123"}' }, ...agent, ...fields }));
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

  test("a conversation is one sample that each call extends with the same tokens, streamed or not", async () => {
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
    const episode = await world.episodeOf("s-record");
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

  test("a call that continues from an earlier point starts a new sample, which metrics and turn show", async () => {
    await gatewayFor("s-branch");
    const { session, end } = await hold("s-branch");
    for (let i = 0; i < 2; i++) assert.equal((await post(session, asked("01"))).status, 200);
    end();
    const episode = await world.episodeOf("s-branch");
    assert.equal(episode.samples.length, 2);
    assert.equal(episode.metrics.drift_branch, 1);
    assert.deepEqual(JSON.parse(episode.turns[1]!.infoJson), { drift: "branch" });
  });

  test("a credential opens only its own session, and only while that is open", async () => {
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
    assert.equal((await world.episodeOf("s-one")).turns.length, 0);
    assert.equal((await world.episodeOf("s-other")).turns.length, 0);
    await eventually("the end of the session", async () => (await post(one.session, asked())).status === 404);
  });

  test("when a client disconnects its generation ends, and the record says so", async () => {
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
    const episode = await world.episodeOf("s-gone");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.deepEqual(
      episode.turns.map(({ finishReason }) => finishReason),
      ["aborted", "aborted"],
    );
    assert.equal(episode.samples.length, 0);
    assert.equal(episode.metrics.session_abandoned, 2);
  });

  test("a stop text ends the generation, and the record holds the tokens sampled until then", async () => {
    await gatewayFor("s-stop", () => world.answer("0123", "stream"));
    const { session, end } = await hold("s-stop");
    const body = (await (await post(session, asked("01", { stop: "2" }))).json()) as {
      choices: { message: { content: string }; finish_reason: string }[];
      usage: { completion_tokens: number };
    };
    assert.equal(body.choices[0]?.message.content, "01");
    assert.equal(body.choices[0]?.finish_reason, "stop");
    end();
    const { samples, turns } = await world.episodeOf("s-stop");
    const { sampledBegin, sampledEnd, finishReason } = turns[0]!;
    assert.equal(finishReason, "stop_text");
    assert.equal(world.tokenizer.decode(samples[0]!.tokenIds.slice(sampledBegin, sampledEnd)), "012");
    assert.equal(body.usage.completion_tokens, sampledEnd - sampledBegin);
  });

  test("rewards are accepted only if the run file allows them", async () => {
    await gatewayFor("s-none");
    await gatewayFor("s-rewards");
    const none = await hold("s-none");
    await post(none.session, asked());
    const refused = await failureOf(await post(none.session, { value: 1 }, { at: "/rewards" }));
    assert.deepEqual([refused.status, refused.code], [403, "rewards_not_taken"]);
    none.end();
    assert.equal((await world.episodeOf("s-none")).environmentReturn, 0);

    const { session, end } = await hold("s-rewards", { takesRewards: true });
    assert.equal((await post(session, { value: 1 }, { at: "/rewards" })).status, 400, "no turn yet");
    await post(session, asked());
    for (const body of [{ value: 0.5 }, { value: 0.25, turn: 0 }]) {
      assert.equal((await post(session, body, { at: "/rewards" })).status, 200);
    }
    assert.equal((await post(session, { value: "1" }, { at: "/rewards" })).status, 400);
    end();
    const episode = await world.episodeOf("s-rewards");
    assert.equal(episode.environmentReturn, 0.75);
    assert.equal(episode.turns[0]?.reward, 0.75);
  });

  test("a reward that comes after the attempt goes to the judge with the rollout and the digest of the key, by any process", async () => {
    const run = "s-later";
    await gatewayFor(run);
    const states = await openBucket(world.bus, BucketName.runState, RunStateSchema);
    const configJson = JSON.stringify({ rollout: { rewardDeadlineMs: 60_000 } });
    await states.put(run, create(RunStateSchema, { runId: run, configJson }));
    const asks: RewardRequest[] = [];
    const answers = [
      RewardResult.NOT_OPEN,
      RewardResult.TAKEN,
      RewardResult.REPEATED,
      RewardResult.STANDS,
      RewardResult.WRONG_KEY,
    ];
    const judge = respond(
      world.bus,
      subjects.judgeReward(RewardGiver.session),
      RewardRequestSchema,
      RewardReplySchema,
      {
        handle: async ({ message, reply }) => {
          asks.push(message);
          const result = answers[asks.length - 1] ?? RewardResult.UNAVAILABLE;
          const standing = create(GivenRewardSchema, { judge: "later", value: 0.5 });
          await reply(create(RewardReplySchema, { result, standing, error: "why" }));
        },
        onError: (error) => assert.fail(String(error)),
      },
    );
    const { session, end } = await hold(run, { takesRewards: true });
    await post(session, asked());
    const early = await failureOf(await post(session, { value: 1, name: "later" }, { at: "/rewards" }));
    assert.deepEqual([early.status, early.code], [409, "session_open"]);
    end();
    const [digest, ...others] = (await world.episodeOf(run)).sessionKeyDigests;
    assert.deepEqual(others, []);
    // Another process of the service, which has never seen the session.
    const { http } = await world.startService();
    const url = `${http.url}${new URL(session.url).pathname}`;
    const give = (body: object, key = session.key) =>
      post({ ...session, url, key }, body, { at: "/rewards" });
    const taken = await give({ value: 0.5, name: "later", reason: "sold" });
    assert.deepEqual(
      [taken.status, await taken.json()],
      [200, { name: "later", value: 0.5, isRepeated: false, awaited: [] }],
    );
    assert.equal(asks.length, 2, "asked again while the judge had not taken the episode up");
    const [{ runId, slot, judge: name, value, reason, keyDigest } = create(RewardRequestSchema)] = asks;
    assert.deepEqual([runId, slot?.step, name, value, reason], [run, 1, "later", 0.5, "sold"]);
    assert.deepEqual(Buffer.from(keyDigest), Buffer.from(digest ?? []));
    assert.equal(((await (await give({ value: 0.5 })).json()) as { isRepeated: boolean }).isRepeated, true);
    const standing = await failureOf(await give({ value: 1 }));
    assert.deepEqual([standing.status, standing.code], [409, "reward_stands"]);
    assert.equal((await give({ value: 1 }, "another")).status, 401);
    assert.equal((await give({ value: 1 })).status, 503, "may be tried again");
    assert.equal((await give({ value: 1, turn: 0 })).status, 400);
    assert.equal(
      (await post({ ...session, url }, { value: 1 }, { at: "/rewards", headers: { authorization: "" } }))
        .status,
      401,
    );
    await judge.drain();
  });

  test("the answers of a role that does not learn are not trained", async () => {
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
    const { samples, turns } = await world.episodeOf("s-roles");
    assert.equal(samples.length, 1);
    assert.deepEqual(
      turns.map(({ sample, infoJson }) => [sample, JSON.parse(infoJson).role]),
      [
        [0, "solver"],
        [1, "critic"],
      ],
    );
  });

  test("a wrong call is answered with what is wrong, and does not end the rollout", async () => {
    await gatewayFor("s-wrong");
    const { session, end } = await hold(
      "s-wrong",
      {},
      { limits: { ...LIMITS, maxContextTokens: 40, maxTurns: 2 } },
    );
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
    assert.equal((await world.episodeOf("s-wrong")).outcome, Outcome.COMPLETED);
  });
});
