import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ExportTraceServiceRequestSchema, type Span, Span_SpanKind } from "@hone/otlp-proto";
import { contextOf, startSpan, startTelemetry, type Telemetry } from "@hone/telemetry";
import { startChatSpan } from "./chat-span.ts";
import { EngineBusyError } from "./errors.ts";
import type { EngineGeneration, GenerateRequest } from "./inference-engine.ts";

const request: GenerateRequest = {
  id: "call#1",
  model: "lake-1",
  promptIds: [1, 2, 3],
  sampling: { temperature: 0.5, topP: 1, topK: 0, maxNewTokens: 8, stopTokenIds: [] },
  seed: 4,
  sessionId: "session-9",
  groupId: "lake-1/train.3.17",
  versionRange: { lowest: 3, highest: 4 },
  deadlineMs: 1_000,
};
const result: EngineGeneration = {
  tokenIds: [5, 6],
  logprobs: [-1, -2],
  finishReason: "stop",
  versions: [
    { version: 3, tokenCount: 1 },
    { version: 4, tokenCount: 1 },
  ],
  metrics: { prefillTokens: 1, cachedTokens: 2, queueMs: 10, prefillMs: 20, decodeMs: 30 },
};

describe("startChatSpan()", () => {
  const spans: Span[] = [];
  const receiver = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { resourceSpans } = fromBinary(ExportTraceServiceRequestSchema, Buffer.concat(chunks));
    for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    response.end();
  });
  let telemetry: Telemetry;

  before(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    telemetry = await startTelemetry({
      serviceName: "inference-gateway",
      tracerUrl: `http://127.0.0.1:${port}`,
    });
    const caller = startSpan("chat lake-1", { parent: "root" });
    startChatSpan(request, contextOf(caller), "replica-1").done(result);
    startChatSpan(request, contextOf(caller), "replica-1").failed(new EngineBusyError(7));
    caller.end();
    await telemetry.shutdown();
  });
  after(() => receiver.close());

  const attributesOf = (span: Span | undefined) =>
    Object.fromEntries(span!.attributes.map(({ key, value }) => [key, value?.value.value]));
  const servers = () => spans.filter((span) => span.kind === Span_SpanKind.SERVER);

  test("is a child of the caller's span, with the request and its result as attributes", () => {
    const [done] = servers();
    const caller = spans.find((span) => span.name === "chat lake-1" && span.parentSpanId.length === 0)!;
    assert.deepEqual(done!.parentSpanId, caller.spanId);
    assert.deepEqual(done!.traceId, caller.traceId);
    const attributes = attributesOf(done);
    assert.equal(attributes["gen_ai.operation.name"], "chat");
    assert.equal(attributes["gen_ai.request.model"], "lake-1");
    assert.equal(attributes["gen_ai.request.temperature"], 0.5);
    assert.equal(attributes["gen_ai.usage.input_tokens"], 3n);
    assert.equal(attributes["gen_ai.usage.output_tokens"], 2n);
    assert.equal(attributes["gen_ai.usage.cache_read.input_tokens"], 2n);
    assert.equal(attributes["hone.policy.version"], 4n);
    assert.equal(attributes["hone.replica"], "replica-1");
  });

  test("has the engine's phases as its children, one after the other", () => {
    const [done] = servers();
    const phases = ["engine.queue", "engine.prefill", "engine.decode"].map((name) => {
      const span = spans.find((other) => other.name === name)!;
      assert.deepEqual(span.parentSpanId, done!.spanId);
      return span;
    });
    const tookMs = phases.map((span) => Number(span.endTimeUnixNano - span.startTimeUnixNano) / 1e6);
    for (const [i, expected] of [10, 20, 30].entries())
      assert.ok(Math.abs(tookMs[i]! - expected) < 1, `${tookMs[i]}`);
    assert.equal(phases[1]!.startTimeUnixNano, phases[0]!.endTimeUnixNano);
    assert.equal(phases[2]!.startTimeUnixNano, phases[1]!.endTimeUnixNano);
  });

  test("has the reason when a generation failed", () => {
    const failed = servers()[1];
    assert.equal(attributesOf(failed)["error.type"], "ENGINE_BUSY");
    assert.match(failed!.status!.message, /queue is full/);
  });
});
