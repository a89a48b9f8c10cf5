import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BucketName, EventKind, publishBytes, StreamName, subjects } from "@hone/messaging";
import { ExportTraceServiceRequestSchema } from "@hone/otlp-proto";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { RunEventSchema, RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { absurdText, badBodies, withInputs } from "@hone/testing/fuzz";
import fc from "fast-check";
import { publishEvent } from "./testing/sample-run.ts";
import { startStack, type TracerStack } from "./testing/stack.ts";

const RUN = "fuzz-1";

describe("tracer and bad input", { timeout: 180_000 }, () => {
  let stack: TracerStack;
  let tracer: RunningService;
  before(async () => {
    stack = await startStack(Date.UTC(2026, 10, 20, 9));
    tracer = await stack.startTracer({ HONE_TRACER_MAX_BODY_BYTES: "1000000" });
    await tracer.becameReady;
  });
  after(async () => {
    await tracer?.stop();
    await stack?.[Symbol.asyncDispose]();
  });

  const get = (route: string) => fetch(`${tracer.http.url}${route}`);
  const post = (route: string, body: Uint8Array, contentType: string) =>
    fetch(`${tracer.http.url}${route}`, {
      method: "POST",
      body: Uint8Array.from(body),
      // Not kept alive, as the server may close an idle connection while the next inputs are made.
      headers: { "content-type": contentType, connection: "close" },
    });
  const deadCount = async () => (await stack.bus.manager.streams.info(StreamName.dead)).state.messages;
  /** Checks that all views of a run answer. */
  const checkViews = async (run: string) => {
    for (const route of [
      "/api/runs",
      `/api/runs/${run}`,
      `/api/runs/${run}/steps`,
      `/api/runs/${run}/rollouts`,
      `/api/runs/${run}/rollout-counts`,
    ]) {
      const answer = await get(route);
      assert.ok(
        answer.status === 200 || answer.status === 404,
        `${route}: ${answer.status} ${await answer.text()}`,
      );
    }
  };

  test("every event is stored or goes to the stream DEAD, and the next good one is stored", async () => {
    const metrics = { success: 1 };
    const kinds: NonNullable<MessageInitShape<typeof RunEventSchema>["kind"]>[] = [
      { case: "stepCompleted", value: { step: 1, totalSteps: 3, version: 1, metrics } },
      { case: "accepted", value: { requestSequence: 7n, configJson: '{"name":"fuzz"}' } },
      { case: "evaluated", value: { version: 1, mode: "greedy", episodes: 4, metrics } },
      { case: "refused", value: { requestSequence: 9n, problems: [{ key: "a", message: "b" }] } },
      { case: "ended", value: { phase: RunPhase.COMPLETED, reason: "" } },
    ];
    for (const kind of kinds) {
      const valid = create(RunEventSchema, { runId: RUN, timeMs: 1_000n, kind });
      await withInputs(badBodies(RunEventSchema, valid), 60, async (bodies) => {
        const subject = subjects.event(RUN, EventKind.step);
        for (const body of bodies) await publishBytes(stack.bus, subject, body, undefined);
        await stack.stored();
      });
    }
    assert.ok((await deadCount()) > 0);
    await checkViews(RUN);
    await publishEvent(stack.bus, "after-1", 1_000, kinds[0]!);
    await stack.stored();
    assert.deepEqual(
      ((await (await get("/api/runs/after-1/steps")).json()) as { steps: number[] }).steps,
      [1],
    );
  });

  test("every scored episode is stored and can be shown, or goes to the stream DEAD", async () => {
    const valid = create(ScoredEpisodeSchema, {
      episode: {
        runId: RUN,
        slot: { split: "train", step: 1, task: 2, index: 3 },
        attempt: 1,
        outcome: 1,
        samples: [
          {
            tokenIds: [1, 2, 3],
            lossMask: new Uint8Array([0, 1, 1]),
            logprobs: [-1, -2],
            versions: [{ version: 1, tokenCount: 2 }],
          },
        ],
        turns: [
          { index: 0, sample: 0, sampledBegin: 1, sampledEnd: 3, finishReason: "stop", infoJson: "{}" },
        ],
        metadataJson: "{}",
        metrics: { success: 1 },
        task: { id: "t", environmentConfigJson: "{}" },
      },
      reward: 1,
    });
    await withInputs(badBodies(ScoredEpisodeSchema, valid), 200, async (bodies) => {
      for (const body of bodies) await publishBytes(stack.bus, subjects.rolloutScored(RUN), body, undefined);
      await stack.stored();
      await checkViews(RUN);
      const listed = (await (await get(`/api/runs/${RUN}/rollouts?limit=200`)).json()) as {
        rollouts: { slot: string }[];
      };
      assert.ok(listed.rollouts.length > 0);
      for (const { slot } of listed.rollouts) {
        const answer = await get(`/api/runs/${RUN}/rollouts/${slot}`);
        assert.equal(answer.status, 200, `${slot}: ${await answer.text()}`);
      }
    });
  });

  test("a state that the database cannot hold does not keep other states from being stored", async () => {
    const raw = await stack.bus.keyValue.open(BucketName.runState);
    const valid = create(RunStateSchema, {
      runId: RUN,
      phase: RunPhase.TRAIN,
      version: 1,
      waitingSinceMs: 5n,
    });
    await withInputs(badBodies(RunStateSchema, valid), 100, async (bodies) => {
      for (const [index, body] of bodies.entries()) await raw.put(`state-${index}`, body);
    });
    await raw.put("state-good", toBinary(RunStateSchema, { ...valid, runId: "state-good" }));
    await eventually("the good one", async () => (await get("/api/runs/state-good")).status === 200);
  });

  test("any body on the intake is answered with a status below 500, in either encoding", async () => {
    const valid = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          scopeSpans: [
            {
              spans: [
                {
                  traceId: new Uint8Array(16).fill(7),
                  spanId: new Uint8Array(8).fill(9),
                  name: "train",
                  attributes: [{ key: "a", value: { value: { case: "intValue", value: 1n } } }],
                },
              ],
            },
          ],
        },
      ],
    });
    await withInputs(badBodies(ExportTraceServiceRequestSchema, valid), 80, async (bodies) => {
      for (const body of bodies) {
        const answer = await post("/v1/traces", body, "application/x-protobuf");
        assert.ok([200, 400, 413].includes(answer.status), `${answer.status}`);
      }
    });
    await withInputs(absurdText, 100, async (texts) => {
      for (const text of texts) {
        const answer = await post("/v1/traces", Buffer.from(text), "application/json");
        assert.ok(answer.status === 200 || answer.status === 400, `${answer.status} ${text.slice(0, 60)}`);
      }
    });
    const good = await post(
      "/v1/traces",
      toBinary(ExportTraceServiceRequestSchema, valid),
      "application/x-protobuf",
    );
    assert.equal(good.status, 200);
    const trace = `/api/traces/${"07".repeat(16)}`;
    await eventually("the good span", async () => (await get(trace)).status === 200, { deadlineMs: 15_000 });
  });

  test("any path and query is answered with a status below 500", async () => {
    const segment = fc.oneof(
      absurdText.filter((text) => text.length < 500),
      fc.constantFrom("runs", RUN, "rollouts", "steps", "train.1.2.3", "trace"),
    );
    const query = fc.dictionary(
      fc.constantFrom("after", "step", "limit", "before", "minReward", "outcome", "run", "x"),
      absurdText.filter((text) => text.length < 200),
      { maxKeys: 4 },
    );
    await withInputs(fc.tuple(fc.array(segment, { maxLength: 5 }), query), 200, async (inputs) => {
      for (const [segments, parameters] of inputs) {
        const path = ["api", ...segments].map((part) => encodeURIComponent(part.toWellFormed())).join("/");
        const search = new URLSearchParams(parameters);
        const answer = await get(`/${path}?${search}`);
        assert.ok(answer.status < 500, `${path}?${search}: ${answer.status} ${await answer.text()}`);
      }
    });
  });

  test("clients that send their headers slowly, or huge headers, do not keep others from being served", async () => {
    const { hostname, port } = new URL(tracer.http.url);
    const slow = Array.from({ length: 50 }, () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => undefined);
      socket.write("GET /api/runs HTTP/1.1\r\nhost: x\r\nx-slow: ");
      return socket;
    });
    assert.equal((await get("/livez")).status, 200);
    const huge = await fetch(`${tracer.http.url}/api/runs`, { headers: { "x-huge": "h".repeat(20_000) } });
    assert.equal(huge.status, 431);
    for (const socket of slow) socket.destroy();
    assert.equal((await get("/api/runs")).status, 200);
  });

  test("the live feed refuses more than 256 pages and serves the others", async () => {
    const gone = new AbortController();
    const opened = await Promise.all(
      Array.from({ length: 300 }, () => fetch(`${tracer.http.url}/api/live`, { signal: gone.signal })),
    );
    const statuses = opened.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 200).length, 256);
    assert.equal(statuses.filter((status) => status === 503).length, 44);
    gone.abort();
    await eventually("a free place", async () => {
      const once = new AbortController();
      const { status } = await fetch(`${tracer.http.url}/api/live`, { signal: once.signal });
      once.abort();
      return status === 200;
    });
  });
});
