/**
 * Tests what people change from the page: notes, the course of runs, and rewards. The test answers for the trainer and the judge, by
 * their protocol, and is also the attacker: a page of another site in the browser of somebody who has the cookie.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  openBucket,
  openRewardKey,
  publishStored,
  RewardGiver,
  RunControl,
  respond,
  StreamName,
  slotToWire,
  subjects,
} from "@hone/messaging";
import {
  RewardReplySchema,
  type RewardRequest,
  RewardRequestSchema,
  RewardResult,
  RolloutRewardsSchema,
} from "@hone/proto-gen/judge";
import { EpisodeSchema, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { ControlReplySchema, ControlRequestSchema } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { chatEpisode } from "../../testing/chat-episode.ts";
import { publishEvent } from "../../testing/sample-run.ts";
import { startStack, type TracerStack } from "../../testing/stack.ts";

const TOKEN = "the-token-of-the-page-0123456789";
const RUN = "trains-1";
const SLOT = { split: "eval", step: 1, task: 0, index: 0 } as const;
const ROLLOUT = `/api/runs/${RUN}/rollouts/eval.1.0.0`;

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

describe("what people change from the page", { timeout: 120_000 }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  let cookie: string;
  let refusal = "";
  const asked: string[] = [];
  const rewards: RewardRequest[] = [];

  before(async () => {
    stack = await startStack(Date.now() - 100_000);
    const onError = (error: unknown) => {
      throw error;
    };
    for (const verb of [RunControl.pause, RunControl.resume, RunControl.cancel]) {
      respond(stack.bus, subjects.runControl(verb, "*"), ControlRequestSchema, ControlReplySchema, {
        handle: ({ message, reply }) => {
          asked.push(`${verb} ${message.runId}`);
          return reply(create(ControlReplySchema, { error: refusal }));
        },
        onError,
      });
    }
    respond(stack.bus, subjects.judgeReward(RewardGiver.page), RewardRequestSchema, RewardReplySchema, {
      handle: ({ message, reply }) => {
        rewards.push(message);
        const isFirst = rewards.length === 1;
        return reply(
          create(RewardReplySchema, {
            result: isFirst ? RewardResult.TAKEN : RewardResult.STANDS,
            error: isFirst ? "" : "0.5 was given before and stands",
          }),
        );
      },
      onError,
    });
    tracer = await stack.startTracer({ HONE_TRACER_TOKEN: TOKEN });
    await publishEvent(stack.bus, RUN, Date.now(), {
      case: "accepted",
      value: { requestSequence: 1n, configJson: "{}" },
    });
    for (const index of [0, 1]) {
      const scored = chatEpisode(RUN, { ...SLOT, index });
      await publishStored(stack.bus, subjects.rolloutScored(RUN), ScoredEpisodeSchema, scored);
    }
    await stack.stored();
    const answer = await fetch(`${tracer.http.url}/?token=${TOKEN}`, { redirect: "manual" });
    cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? assert.fail();
  });
  after(async () => {
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const send = async (path: string, { method = "POST", headers = {}, body = {} }: Sent = {}) => {
    const answer = await fetch(`${tracer.http.url}${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: answer.status, value: (await answer.json()) as Record<string, unknown> };
  };
  const program = { authorization: `Bearer ${TOKEN}` };
  const page = () => ({ cookie, origin: tracer.http.url });
  const read = async (path: string) =>
    (await (await fetch(`${tracer.http.url}${path}`, { headers: program })).json()) as Record<
      string,
      unknown
    >;

  test("nothing is changed without the token, by a foreign page, or by a request that no page and no program sends", async () => {
    const changes: readonly [string, string][] = [
      ["POST", `${ROLLOUT}/notes`],
      ["DELETE", "/api/notes/1"],
      ["POST", `/api/runs/${RUN}/control`],
      ["POST", `/api/runs/${RUN}/waiting/eval.1.0.0/reward`],
    ];
    const attacks: readonly [number, Record<string, string>][] = [
      [401, {}],
      [401, { authorization: "Bearer something-else" }],
      // The cookie alone: a browser would say where the request comes from.
      [403, { cookie }],
      [403, { cookie, origin: "https://evil.example" }],
      [403, { cookie, origin: "null" }],
      [403, { cookie, origin: "http://127.0.0.1:1" }],
      [403, { cookie, "sec-fetch-site": "cross-site" }],
      [403, { cookie, "sec-fetch-site": "same-site" }],
      [403, { cookie, "sec-fetch-site": "none" }],
      // What a form can send.
      [415, { ...page(), "content-type": "text/plain" }],
      [415, { ...page(), "content-type": "application/x-www-form-urlencoded" }],
    ];
    for (const [method, path] of changes) {
      for (const [status, headers] of attacks) {
        const body = { text: "owned", action: "cancel", value: 1 };
        assert.equal(
          (await send(path, { method, headers, body })).status,
          status,
          `${path} ${JSON.stringify(headers)}`,
        );
      }
    }
    assert.deepEqual([asked, rewards], [[], []]);
    assert.deepEqual((await read(`${ROLLOUT}/notes`)).notes, []);
  });

  test("a tracer without a token takes no changes, and says so", async () => {
    const open = await stack.startTracer();
    try {
      const access = await fetch(`${open.http.url}/api/access`);
      assert.deepEqual(await access.json(), { canWrite: false });
      const answer = await fetch(`${open.http.url}${ROLLOUT}/notes`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: open.http.url },
        body: '{"text":"a"}',
      });
      assert.equal(answer.status, 403);
      assert.match(await answer.text(), /HONE_TRACER_TOKEN/);
    } finally {
      await open.stop();
    }
    assert.deepEqual(await read("/api/access"), { canWrite: true });
  });

  test("notes are stored for a rollout, found by the filter, exported as JSON lines, and removed", async () => {
    const text = "It names no train.\n<script>alert(1)</script> \u202e";
    const first = await send(`${ROLLOUT}/notes`, {
      headers: page(),
      body: { text, score: 0.25, turn: 1, author: "Ada" },
    });
    assert.equal(first.status, 201);
    const second = await send(`${ROLLOUT}/notes`, {
      headers: { cookie, "sec-fetch-site": "same-origin" },
      body: { score: 1 },
    });
    assert.equal(second.status, 201);
    const { rollouts } = await read(`/api/runs/${RUN}/rollouts?noted=yes`);
    assert.deepEqual(
      (rollouts as { slot: string; notes: number }[]).map(({ slot, notes }) => [slot, notes]),
      [["eval.1.0.0", 2]],
    );
    const exported = await fetch(`${tracer.http.url}/api/notes.jsonl?run=${RUN}`, { headers: program });
    assert.match(exported.headers.get("content-disposition") ?? "", /filename="trains-1-notes.jsonl"/);
    const lines = (await exported.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(lines.length, 2);
    const { createdAt, ...line } = lines[0] ?? assert.fail();
    assert.ok(Math.abs(Date.parse(String(createdAt)) - Date.now()) < 60_000);
    assert.deepEqual(line, {
      id: first.value.id,
      runId: RUN,
      slot: "eval.1.0.0",
      turn: 1,
      author: "Ada",
      text: text.trim(),
      score: 0.25,
      outcome: "completed",
      reward: 0,
      taskId: "trains:0",
    });
    const removed = await send(`/api/notes/${String(first.value.id)}`, {
      method: "DELETE",
      headers: program,
    });
    assert.equal(removed.status, 200);
    assert.equal(
      (await send(`/api/notes/${String(first.value.id)}`, { method: "DELETE", headers: program })).status,
      404,
    );
    assert.equal(((await read(`${ROLLOUT}/notes`)).notes as unknown[]).length, 1);
  });

  test("a note that is none is refused with what is wrong", async () => {
    const bad: readonly [unknown, RegExp][] = [
      [{}, /a text or a score/],
      [{ text: "  " }, /a text or a score/],
      [{ text: "x".repeat(10_001) }, /text is not accepted/],
      [{ text: "a", score: "1" }, /score is not accepted/],
      [{ text: "a", turn: -1 }, /turn is not accepted/],
      [{ text: "a", other: 1 }, /not accepted/],
      ["[1]", /not accepted/],
      ["{", /not JSON/],
      [`{"text":"${"x".repeat(70_000)}"}`, /more than/],
      ['{"text":"a","score":1e999}', /score is not accepted/],
    ];
    for (const [body, message] of bad) {
      const { status, value } = await send(`${ROLLOUT}/notes`, { headers: program, body });
      assert.equal(status, 400, JSON.stringify(value));
      assert.match(JSON.stringify(value), message);
    }
    const nowhere = `/api/runs/${RUN}/rollouts/eval.9.9.9/notes`;
    assert.equal((await send(nowhere, { headers: program, body: { text: "a" } })).status, 404);
  });

  test("a rollout holds 200 notes, and no more", async () => {
    const path = `/api/runs/${RUN}/rollouts/eval.1.0.1/notes`;
    for (let from = 0; from < 200; from += 20) {
      const texts = Array.from({ length: 20 }, (_, offset) => String(from + offset));
      const sent = await Promise.all(texts.map((text) => send(path, { headers: program, body: { text } })));
      assert.ok(sent.every(({ status }) => status === 201));
    }
    const { status, value } = await send(path, { headers: program, body: { text: "one more" } });
    assert.equal(status, 409);
    assert.match(JSON.stringify(value), /remove one first/);
    const exported = await fetch(`${tracer.http.url}/api/notes.jsonl`, { headers: program });
    assert.equal((await exported.text()).trimEnd().split("\n").length, 201);
  });

  test("pause, resume and cancel reach the trainer, and its refusal reaches the person", async () => {
    const path = `/api/runs/${RUN}/control`;
    for (const action of ["pause", "resume", "cancel"]) {
      const { status, value } = await send(path, { headers: page(), body: { action } });
      assert.deepEqual([status, value], [200, { run: RUN, action }]);
    }
    assert.deepEqual(asked, [`pause ${RUN}`, `resume ${RUN}`, `cancel ${RUN}`]);
    refusal = "the run has ended";
    const refused = await send(path, { headers: page(), body: { action: "pause" } });
    assert.deepEqual([refused.status, (refused.value.error as { message: string }).message], [409, refusal]);
    assert.equal((await send(path, { headers: page(), body: { action: "status" } })).status, 400);
    const wrong = `/api/runs/${encodeURIComponent("a.b")}/control`;
    assert.equal((await send(wrong, { headers: page(), body: { action: "pause" } })).status, 400);
  });

  test("a rollout that waits for a reward is shown with its episode, and takes the reward once", async () => {
    const slot = { split: "train", step: 2, task: 3, index: 1 } as const;
    const { episode } = chatEpisode(RUN, slot);
    assert.ok(episode !== undefined);
    await publishStored(
      stack.bus,
      subjects.rolloutFinished(RUN),
      EpisodeSchema,
      create(EpisodeSchema, episode),
    );
    const { state } = await stack.bus.manager.streams.info(StreamName.episodes);
    const bucket = await openBucket(stack.bus, BucketName.rewards, RolloutRewardsSchema);
    await bucket.put(
      openRewardKey(RUN, slot),
      create(RolloutRewardsSchema, {
        finished: { position: BigInt(state.last_seq), runId: RUN, slot: slotToWire(slot), attempt: 1 },
        sinceMs: BigInt(Date.now() - 60_000),
        deadlineMs: 3_600_000n,
        awaited: [
          { judge: "people", weight: 1, place: 0 },
          { judge: "customers", weight: 1, place: 1 },
        ],
        rewards: [{ judge: "customers", value: 1 }],
      }),
    );
    const { waiting } = await read(`/api/runs/${RUN}/waiting`);
    const [entry] = waiting as { slot: string; judges: string[]; untilMs: number }[];
    assert.deepEqual([entry?.slot, entry?.judges], ["train.2.3.1", ["people"]]);
    const path = `/api/runs/${RUN}/waiting/train.2.3.1`;
    const shown = await read(path);
    assert.equal((shown.turns as unknown[]).length, 3);

    const body = { value: 0.5, judge: "people", reason: "polite" };
    const given = await send(`${path}/reward`, { headers: page(), body });
    assert.deepEqual([given.status, given.value], [200, { awaited: [] }]);
    const request = rewards[0] ?? assert.fail();
    assert.deepEqual(
      [
        request.runId,
        request.slot?.task,
        request.judge,
        request.value,
        request.reason,
        request.keyDigest.length,
      ],
      [RUN, 3, "people", 0.5, "polite", 0],
    );
    const again = await send(`${path}/reward`, { headers: page(), body: { ...body, value: 1 } });
    assert.equal(again.status, 409);
    assert.match(JSON.stringify(again.value), /0\.5 was given before/);
    assert.equal((await send(`${path}/reward`, { headers: page(), body: { value: "1" } })).status, 400);
    const other = `${tracer.http.url}/api/runs/${RUN}/waiting/train.9.9.9`;
    assert.equal((await fetch(other, { headers: program })).status, 404);
  });
});
