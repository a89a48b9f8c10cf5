import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { publishBytes, subjects } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { publishEvent, publishSampleRun, publishState, type SampleRun } from "./testing/sample-run.ts";
import { startStack, type TracerStack } from "./testing/stack.ts";

/** Starts an OTLP receiver that accepts everything. */
async function startReceiver(received: string[]) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push(`${request.url} ${body}`);
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("tracer on a real bus and database", { timeout: 120_000 }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  let run: SampleRun;

  const start = () =>
    stack.startTracer({
      HONE_TRACER_MAX_BODY_BYTES: "1000000",
      HONE_JAEGER_URL: "https://jaeger.example.org/ui/",
    });

  before(async () => {
    stack = await startStack(Date.UTC(2026, 10, 20, 9));
    run = stack.run;
    tracer = await start();
    await publishSampleRun(stack.bus, run, tracer.http.url);
    await stack.stored();
  });
  after(async () => {
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const get = async (route: string) => {
    const answer = await fetch(`${tracer.http.url}${route}`);
    // biome-ignore lint/suspicious/noExplicitAny: answers are looked at by many tests, each at its own part
    return { status: answer.status, body: (await answer.json()) as any };
  };

  test("shows a run with its state, what it waits for, its metrics and its evaluations", async () => {
    const { body } = await get("/api/runs");
    assert.equal(body.runs.length, 1);
    const [listed] = body.runs;
    assert.equal(listed.runId, run.runId);
    assert.equal(listed.phase, "rollout");
    assert.match(listed.waitingFor, /160 of 256/);
    assert.equal(listed.waitingOwner, "agent-rollout");
    assert.equal(listed.waitingSinceMs, run.startedAtMs + 40 * 2_400);
    assert.deepEqual(listed.progress, { kind: "rollouts", step: 41, done: 160, total: 256 });
    assert.equal(listed.curve.length, 40);
    const detail = await get(`/api/runs/${run.runId}`);
    assert.equal(detail.body.config.name, "frozen-lake");
    assert.deepEqual(
      detail.body.evaluations.map((evaluation: { version: number; mode: string }) => [
        evaluation.version,
        evaluation.mode,
      ]),
      [
        [0, "greedy"],
        [0, "sampled"],
        [20, "sampled"],
        [40, "sampled"],
      ],
    );
    const series = await get(`/api/runs/${run.runId}/steps?after=30`);
    assert.deepEqual(series.body.steps, [31, 32, 33, 34, 35, 36, 37, 38, 39, 40]);
    assert.equal(series.body.metrics.success.length, 10);
    assert.equal(series.body.metrics.unknown[0], null);
  });

  test("shows which parts answer, and how many messages could not be decoded", async () => {
    const before = await eventually("a check of the stack", async () => {
      const { body } = await get("/api/health");
      return body.services.every(({ instances }: { instances: number }) => instances === 1) && body;
    });
    assert.deepEqual(before.bus, { silentSinceMs: null });
    assert.deepEqual(before.database, { silentSinceMs: null });
    assert.deepEqual(
      before.services.map(({ service, silentSinceMs }: { service: string; silentSinceMs: unknown }) => [
        service,
        silentSinceMs,
      ]),
      ["dataset", "agent-rollout", "inference-gateway", "judge", "trainer", "tracer"].map((name) => [
        name,
        null,
      ]),
    );
    await publishBytes(stack.bus, subjects.event("broken", "ended"), "\xff no protobuf", undefined);
    const { dead } = await eventually("the dead letter", async () => {
      const { body } = await get("/api/health");
      return body.dead.count > 0 && body;
    });
    assert.equal(dead.count, 1);
    assert.equal(dead.lastSubject, subjects.event("broken", "ended"));
    assert.match(dead.lastReason, /^Cannot decode a message/);
  });

  test("lists rollouts by a filter, page by page", async () => {
    const all = `/api/runs/${run.runId}/rollouts`;
    const first = await get(`${all}?limit=40`);
    assert.equal(first.body.rollouts.length, 40);
    const second = await get(`${all}?limit=40&before=${first.body.nextBeforeId}`);
    assert.equal(second.body.rollouts.length, 24);
    assert.equal(second.body.nextBeforeId, null);
    const failed = await get(`${all}?outcome=infra_failed`);
    assert.equal(failed.body.rollouts.length, 2);
    assert.ok(failed.body.rollouts.every((rollout: { reward: unknown }) => rollout.reward === null));
    const won = await get(`${all}?split=train&step=40&minReward=0.5`);
    assert.ok(won.body.rollouts.length > 0);
    assert.ok(
      won.body.rollouts.every(
        (rollout: { reward: number; step: number }) => rollout.reward === 1 && rollout.step === 40,
      ),
    );
    const counts = await get(`/api/runs/${run.runId}/rollout-counts`);
    assert.deepEqual(counts.body.counts, [
      { split: "train", outcome: "completed", count: 62, lastStep: 40 },
      { split: "train", outcome: "infra_failed", count: 2, lastStep: 40 },
    ]);
  });

  test("shows each token of a rollout with its text, mask, logprob, version and advantage", async () => {
    await eventually(
      "the advantage",
      async () => (await get(`/api/runs/${run.runId}/rollouts/train.40.1.2`)).body.advantage !== null,
    );
    const { body } = await get(`/api/runs/${run.runId}/rollouts/train.40.1.2`);
    const [turn] = body.turns;
    assert.equal(
      turn.tokens.map((token: { text: string }) => token.text).join(""),
      `${turn.promptText}${turn.responseText}<|end|>`,
    );
    const sampled = turn.tokens.filter((token: { isSampled: boolean }) => token.isSampled);
    assert.equal(sampled[0].text, "<answer>");
    assert.ok(
      sampled.every(
        (token: { logprob: number; version: number }) => token.logprob < 0 && token.version === 39,
      ),
    );
    assert.ok(
      turn.tokens
        .filter((token: { isSampled: boolean }) => !token.isSampled)
        .every((token: object) => !("logprob" in token)),
    );
    assert.equal(body.group.length, 8);
    assert.equal(body.figures["hone.ratio.max"], 1.21);
    assert.equal(body.task.environment, "frozen_lake");
  });

  test("shows each turn's tokens with the turn's own advantage where turns have one", async () => {
    const route = `/api/runs/${run.runId}/rollouts/train.40.2.0`;
    await eventually("the advantage", async () => (await get(route)).body.advantage !== null);
    const { body } = await get(route);
    const [first, second] = body.turns.map(
      (turn: { tokens: { isSampled: boolean; advantage?: number }[] }) =>
        new Set(turn.tokens.filter(({ isSampled }) => isSampled).map(({ advantage }) => advantage)),
    );
    assert.deepEqual([first, second], [new Set([1.25]), new Set([-0.75])]);
  });

  test("shows who worked when in a step, from the times of the trainer and the spans of the rollouts", async () => {
    const route = `/api/runs/${run.runId}/steps/40/timeline`;
    // The sample's two steps with rollouts are stored at the same time, after both.
    await eventually("the spans", async () => (await get(route)).body.rollouts?.drawn === 64);
    const { body } = await get(route);
    assert.deepEqual(body.rollouts, { drawn: 64, total: 64 });
    assert.deepEqual(
      body.phases.map(({ name }: { name: string }) => name),
      ["wait", "score", "train", "commit", "publish"],
    );
    assert.deepEqual(
      body.lanes.map(({ kind, name }: { kind: string; name: string }) => [kind, name]),
      [
        ["engine", "inference-gateway-0"],
        ["agents", ""],
        ["tools", ""],
        ["judge", ""],
      ],
    );
    const [engine, agents] = body.lanes;
    assert.ok(engine.busyShare > 0.3 && engine.busyShare < 0.6, `busy for ${engine.busyShare}`);
    assert.ok(agents.most > 10 && agents.most <= 32, `at most ${agents.most} agents`);
    assert.equal((await get(`/api/runs/${run.runId}/steps/99/timeline`)).status, 404);
    const { queues } = (await get("/api/health")).body;
    assert.deepEqual(queues.jobs, { pending: 0, inWork: 0 });
  });

  test("shows the trace of a rollout with the spans of all services that took part", async () => {
    const route = `/api/runs/${run.runId}/rollouts/train.40.1.2/trace`;
    await eventually("the trace", async () => (await get(route)).status === 200);
    const { body } = await get(route);
    assert.equal(body.spans[0].name, "rollout");
    assert.deepEqual([...new Set(body.spans.map((span: { service: string }) => span.service))].toSorted(), [
      "agent-rollout",
      "inference-gateway",
      "judge",
      "trainer",
    ]);
    assert.equal(body.jaegerUrl, `https://jaeger.example.org/ui/trace/${body.traceId}`);
    const byTrace = await get(`/api/traces/${body.traceId}`);
    assert.deepEqual(byTrace.body, body);
  });

  test("stores events only once that come twice", async () => {
    await publishSampleRun(stack.bus, { ...run, stepsWithRollouts: 0 }, undefined);
    await stack.stored();
    const { body } = await get(`/api/runs/${run.runId}/steps`);
    assert.equal(body.steps.length, 40);
  });

  test("reports to open pages a run that has changed", async () => {
    const gone = new AbortController();
    const stream = await fetch(`${tracer.http.url}/api/live?run=${run.runId}`, { signal: gone.signal });
    const decoder = new TextDecoder();
    let heard = "";
    for await (const chunk of stream.body!) {
      const isFirst = heard === "";
      heard += decoder.decode(chunk, { stream: true });
      if (isFirst) await publishState(stack.bus, run, RunPhase.TRAIN);
      if (heard.includes("event: changed")) break;
    }
    assert.match(heard, /"frozen-lake-1"/);
    gone.abort();
    assert.equal((await get(`/api/runs/${run.runId}`)).body.phase, "train");
  });

  test("shows the end of a run, and the problems of a refused request", async () => {
    await publishEvent(stack.bus, run.runId, run.startedAtMs + 200_000, {
      case: "ended",
      value: { phase: RunPhase.COMPLETED, reason: "", checkpoint: "runs/frozen-lake-1/checkpoints/step-60" },
    });
    await publishEvent(stack.bus, "", run.startedAtMs, {
      case: "refused",
      value: {
        requestSequence: 9n,
        problems: [{ key: "agent.name", message: "`agent.name` is wrong …\u0000" }],
      },
    });
    await stack.stored();
    const { body } = await get("/api/runs");
    assert.equal(body.runs[0].phase, "completed");
    assert.equal(body.runs[0].checkpoint, "runs/frozen-lake-1/checkpoints/step-60");
    assert.equal(body.refusals[0].problems[0].key, "agent.name");
  });

  test("refuses wrong parameters and names them", async () => {
    for (const [route, name] of [
      ["/api/runs/a%20b", "run"],
      [`/api/runs/${run.runId}/rollouts?step=-1`, "step"],
      [`/api/runs/${run.runId}/rollouts?limit=100000`, "limit"],
      [`/api/runs/${run.runId}/rollouts?outcome=won`, "outcome"],
      [`/api/runs/${run.runId}/rollouts?sort=asc`, "sort"],
      [`/api/runs/${run.runId}/rollouts/train.1`, "slot"],
      ["/api/traces/xyz", "trace"],
    ] as const) {
      const { status, body } = await get(route);
      assert.equal(status, 400, route);
      assert.match(body.error.message, new RegExp(`"${name}"`));
    }
    assert.equal((await get("/api/runs/other-1")).status, 404);
    assert.equal((await get(`/api/runs/${run.runId}/rollouts/train.9.9.9`)).status, 404);
    assert.equal((await get(`/api/traces/${"0".repeat(31)}1`)).status, 404);
  });

  test("answers 400 for bodies that are not spans and 413 for oversized ones, and then accepts a good one", async () => {
    const send = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) =>
      fetch(`${tracer.http.url}/v1/traces`, { method: "POST", body, headers });
    const protobuf = { "content-type": "application/x-protobuf" };
    const json = { "content-type": "application/json" };
    assert.equal((await send("not protobuf at all", protobuf)).status, 400);
    assert.equal((await send('{"resourceSpans":1}', json)).status, 400);
    assert.equal((await send("{}", { "content-type": "text/plain" })).status, 415);
    assert.equal((await send("broken", { ...json, "content-encoding": "gzip" })).status, 400);
    assert.equal((await send("{}", { ...json, "content-encoding": "br" })).status, 400);
    assert.equal((await send(new Uint8Array(1_000_001), protobuf)).status, 413);
    const bomb = Uint8Array.from(gzipSync(new Uint8Array(50_000_000)));
    assert.equal((await send(bomb, { ...protobuf, "content-encoding": "gzip" })).status, 413);
    const span = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "00f067aa0ba902b7", name: "hello" };
    const good = JSON.stringify({
      resourceSpans: [{ scopeSpans: [{ spans: [span, { ...span, traceId: "" }] }] }],
    });
    const answer = await send(Uint8Array.from(gzipSync(good)), { ...json, "content-encoding": "gzip" });
    assert.deepEqual(await answer.json(), {
      partialSuccess: { rejectedSpans: "1", errorMessage: "spans need a trace id and a span id" },
    });
    await eventually("the span", async () => (await get(`/api/traces/${span.traceId}`)).status === 200);
  });

  test("shows a resumed run correctly in whatever order its ends and resumptions arrive", async () => {
    const runId = "resumed-4";
    const failed = (reason: string, resumption: number) =>
      ({ case: "ended", value: { phase: RunPhase.FAILED, reason, checkpoint: "", resumption } }) as const;
    const publish = async (kind: Parameters<typeof publishEvent>[3]) => {
      await publishEvent(stack.bus, runId, run.startedAtMs, kind);
      await stack.stored();
      const { body } = await get(`/api/runs/${runId}`);
      return [body.endReason, body.endedAtMs !== null];
    };
    assert.deepEqual(await publish(failed("no module", 0)), ["no module", true]);
    assert.deepEqual(await publish({ case: "resumed", value: { resumption: 1 } }), ["", false]);
    assert.deepEqual(await publish(failed("no module", 0)), ["", false]);
    assert.deepEqual(await publish(failed("no disk", 1)), ["no disk", true]);
    assert.deepEqual(await publish({ case: "resumed", value: { resumption: 1 } }), ["no disk", true]);
  });

  test("shows how many rollouts were removed from the bus unread, in whatever order the events arrive", async () => {
    const runId = "left-behind-5";
    const publish = async (rollouts: bigint) => {
      await publishEvent(stack.bus, runId, run.startedAtMs, { case: "rolloutsUnread", value: { rollouts } });
      await stack.stored();
      return (await get(`/api/runs/${runId}`)).body.unreadRollouts;
    };
    assert.equal(await publish(12n), 12);
    assert.equal(await publish(7n), 12);
    assert.equal(await publish(30n), 30);
    assert.equal((await get(`/api/runs/${run.runId}`)).body.unreadRollouts, 0);
  });

  test("forwards accepted exports to another receiver, and does not forward refused ones", async () => {
    const received: string[] = [];
    await using receiver = await startReceiver(received);
    const forwarding = await stack.startTracer({ HONE_OTLP_FORWARD: receiver.url });
    const send = (body: string) =>
      fetch(`${forwarding.http.url}/v1/traces`, {
        method: "POST",
        body,
        headers: { "content-type": "application/json" },
      });
    await send('{"resourceSpans":[]}');
    await send("nonsense");
    await eventually("the export to arrive", () => received.length > 0);
    await forwarding.stop();
    assert.deepEqual(received, ['/v1/traces {"resourceSpans":[]}']);
  });

  test("stores an event later that comes while the database is down", async () => {
    await stack.stopDatabase();
    await publishEvent(stack.bus, "while-away-3", run.startedAtMs, {
      case: "stepCompleted",
      value: { step: 1, totalSteps: 1, version: 1, metrics: { success: 1 } },
    });
    assert.equal((await get("/api/runs")).status, 503);
    await stack.startDatabase();
    await stack.stored();
    const { body } = await get("/api/runs/while-away-3/steps");
    assert.deepEqual(body.steps, [1]);
  });

  test("a restarted tracer shows what it had stored before", async () => {
    const report = await tracer.stop();
    assert.deepEqual(report.problems, []);
    tracer = await start();
    assert.equal((await get(`/api/runs/${run.runId}`)).body.phase, "completed");
    assert.equal((await get(`/api/runs/${run.runId}/rollouts/train.40.1.2`)).status, 200);
  });
});
