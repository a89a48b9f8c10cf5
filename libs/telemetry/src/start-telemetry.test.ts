import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInputError, TerminalError } from "@hone/core";
import { eventually, startOtlpReceiver } from "@hone/testing";
import {
  Attr,
  contextOf,
  createLogger,
  extractContext,
  type HeaderCarrier,
  injectContext,
  inOwnScope,
  type Link,
  linkToTraceparent,
  SpanKind,
  SpanName,
  startSpan,
  startTelemetry,
  TelemetryStartedError,
  traceparentOf,
  withSpan,
} from "./index.ts";

describe("startTelemetry()", () => {
  test("sends spans with their service, parent, kind and attributes", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "trainer", tracerUrl: `${receiver.url}/` });
    const answer = await withSpan(
      SpanName.rollout,
      { parent: "root", attributes: { [Attr.step]: 3, [Attr.reward]: 0.5 } },
      () => withSpan(SpanName.chat("tiny"), { kind: SpanKind.CLIENT }, () => 42),
    );
    assert.equal(answer, 42);
    assert.equal(await telemetry.shutdown(), true);
    assert.deepEqual(receiver.paths, ["/v1/traces"]);
    const root = receiver.spans.find((span) => span.name === "rollout");
    const child = receiver.spans.find((span) => span.name === "chat tiny");
    assert.ok(root !== undefined && child !== undefined);
    assert.equal(root.service, "trainer");
    assert.equal(root.parentSpanId, "");
    assert.deepEqual(root.attributes, { "hone.step": 3, "hone.reward": 0.5 });
    assert.equal(child.parentSpanId, root.spanId);
    assert.equal(child.traceId, root.traceId);
    assert.equal(child.kind, 3); // SPAN_KIND_CLIENT on the wire
  });

  test("records the error that a span's work throws, without its secrets, and ends the span", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "judge", tracerUrl: receiver.url });
    const failure = new TerminalError("NO_JUDGE", "Cannot reach postgres://hone:hunter2@db/hone");
    await assert.rejects(
      withSpan("judge", {}, () => Promise.reject(failure)),
      (error) => error === failure,
    );
    await telemetry.shutdown();
    const [span] = receiver.spans;
    assert.ok(span !== undefined);
    assert.equal(span.statusCode, 2);
    assert.equal(span.statusMessage, "Cannot reach postgres://[redacted]@db/hone");
    assert.equal(span.attributes["error.type"], "NO_JUDGE");
    assert.equal(span.events[0]?.name, "exception");
    assert.doesNotMatch(JSON.stringify(span), /hunter2/);
  });

  test("keeps every link of a step that used thousands of rollouts", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "trainer", tracerUrl: receiver.url });
    const links: Link[] = [];
    for (let i = 0; i < 5_000; i++) {
      const link = linkToTraceparent(`00-${(i + 1).toString(16).padStart(32, "0")}-00000000000000ff-01`);
      if (link !== undefined) links.push(link);
    }
    startSpan(SpanName.step, { parent: "root", links }).end();
    await telemetry.shutdown();
    assert.equal(receiver.spans[0]?.numLinks, 5_000);
  });

  test("a trace continues in another process through headers, and through a stored traceparent", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "trainer", tracerUrl: receiver.url });
    const headers = carrier();
    const sender = startSpan("send", { parent: "root" });
    injectContext(headers, contextOf(sender));
    sender.end();
    assert.equal(headers.get("traceparent"), traceparentOf(sender));
    startSpan("process", { parent: extractContext(headers) }).end();
    await telemetry.shutdown();
    const process = receiver.spans.find((span) => span.name === "process");
    assert.equal(process?.traceId, sender.spanContext().traceId);
    assert.equal(process?.parentSpanId, sender.spanContext().spanId);
  });

  test("records traces whole or not at all, as the ratio says", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({
      serviceName: "trainer",
      tracerUrl: receiver.url,
      sampleRatio: 0.5,
    });
    const numTraces = 400;
    for (let i = 0; i < numTraces; i++) {
      const headers = carrier();
      await withSpan("rollout", { parent: "root" }, async () => {
        injectContext(headers);
        await withSpan("chat", {}, () => undefined);
      });
      await withSpan("judge", { parent: extractContext(headers) }, () => undefined);
    }
    await telemetry.shutdown();
    const sizes = new Map<string, number>();
    for (const { traceId } of receiver.spans) sizes.set(traceId, (sizes.get(traceId) ?? 0) + 1);
    assert.deepEqual([...new Set(sizes.values())], [3]);
    // Binomial(400, 0.5): 150 to 250 is five standard deviations.
    assert.ok(sizes.size > 150 && sizes.size < 250, `${sizes.size} of ${numTraces} traces`);
  });

  test("records nothing below a parent in another process that is not recorded", async () => {
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "judge", tracerUrl: receiver.url });
    const headers = carrier({ traceparent: "00-0123456789abcdef0123456789abcdef-00000000000000ff-00" });
    const outgoing = carrier();
    await withSpan("judge", { parent: extractContext(headers) }, (span) => {
      assert.equal(span.isRecording(), false);
      injectContext(outgoing);
    });
    assert.equal(outgoing.get("traceparent"), headers.get("traceparent"));
    await telemetry.shutdown();
    assert.deepEqual(receiver.spans, []);
  });

  test("without a tracer nothing is recorded, and a trace passes through", async () => {
    const telemetry = await startTelemetry({ serviceName: "judge", tracerUrl: "" });
    assert.equal(telemetry.isEnabled, false);
    const headers = carrier({ traceparent: "00-0123456789abcdef0123456789abcdef-00000000000000ff-01" });
    const outgoing = carrier();
    const result = await withSpan("judge", { parent: extractContext(headers) }, (span) => {
      assert.equal(span.isRecording(), false);
      injectContext(outgoing, contextOf(span));
      return "scored";
    });
    assert.equal(result, "scored");
    assert.equal(outgoing.get("traceparent"), headers.get("traceparent"));
    assert.equal(await telemetry.shutdown(), true);
  });

  test("a receiver that hangs costs spans, and shutdown ends at its deadline", async () => {
    await using receiver = await startOtlpReceiver({ isSilent: true });
    const lines: string[] = [];
    const logger = createLogger({ service: "judge", sink: { write: (line) => lines.push(line) } });
    const telemetry = await startTelemetry({
      serviceName: "judge",
      tracerUrl: receiver.url,
      exportTimeoutMs: 200,
      logger,
    });
    startSpan("judge", { parent: "root" }).end();
    assert.equal(await telemetry.shutdown({ deadlineMs: 50 }), false);
    assert.equal(await telemetry.shutdown(), false);
    assert.match(lines.join(""), /last spans are lost/);
  });

  test("drops and counts spans that the queue cannot hold, and continues", async () => {
    await using receiver = await startOtlpReceiver();
    const lines: string[] = [];
    const logger = createLogger({ service: "judge", sink: { write: (line) => lines.push(line) } });
    const telemetry = await startTelemetry({ serviceName: "judge", tracerUrl: receiver.url, logger });
    const numSpans = 20_000;
    for (let i = 0; i < numSpans; i++) startSpan("burst", { parent: "root" }).end();
    await eventually("the queue to be sent", () => receiver.spans.length >= 16_384);
    startSpan("after", { parent: "root" }).end();
    await telemetry.shutdown();
    assert.ok(receiver.spans.length < numSpans);
    assert.equal(receiver.spans.at(-1)?.name, "after");
    assert.match(lines.join(""), /Dropped \d+ spans/);
  });

  test("spans of several services in one process carry their own names, in callbacks too", async () => {
    await using receiver = await startOtlpReceiver();
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const start = (serviceName: string) =>
      inOwnScope(async () => {
        const telemetry = await startTelemetry({ serviceName, tracerUrl: receiver.url });
        // What a service starts goes on in its scope: a timer, a callback, what waits for another service.
        const work = go.then(() =>
          withSpan(`work of ${serviceName}`, { parent: "root" }, async () => {
            await new Promise((next) => setTimeout(next, 1));
            startSpan(`part of ${serviceName}`).end();
          }),
        );
        return { telemetry, work };
      });
    const services = await Promise.all(["judge", "dataset", "trainer"].map(start));
    await assert.rejects(start("judge"), TelemetryStartedError);
    resolve();
    await Promise.all(services.map(({ work }) => work));
    startSpan("of nobody", { parent: "root" }).end();
    await services[0]?.telemetry.shutdown();
    assert.ok(services[1]?.telemetry.isEnabled);
    await Promise.all(services.map(({ telemetry }) => telemetry.shutdown()));
    assert.deepEqual(
      receiver.spans.map(({ service, name }) => `${service}: ${name}`).sort(),
      ["dataset", "judge", "trainer"].flatMap((name) => [
        `${name}: part of ${name}`,
        `${name}: work of ${name}`,
      ]),
    );
    const parts = receiver.spans.filter(({ name }) => name.startsWith("part"));
    for (const { parentSpanId } of parts) assert.notEqual(parentSpanId, "");
  });

  test("refuses an address that is none, a ratio outside [0, 1], and a second start", async () => {
    await assert.rejects(
      startTelemetry({ serviceName: "a", tracerUrl: "localhost" }),
      (error) => error instanceof InvalidInputError && error.path === "tracerUrl",
    );
    await assert.rejects(startTelemetry({ serviceName: "a", sampleRatio: 1.5 }), InvalidInputError);
    await using receiver = await startOtlpReceiver();
    const telemetry = await startTelemetry({ serviceName: "a", tracerUrl: receiver.url });
    await assert.rejects(
      startTelemetry({ serviceName: "b", tracerUrl: receiver.url }),
      TelemetryStartedError,
    );
    await telemetry.shutdown();
  });
});

function carrier(initial: Record<string, string> = {}): HeaderCarrier {
  const headers = new Map(Object.entries(initial));
  return {
    get: (key) => headers.get(key),
    set: (key, value) => void headers.set(key, value),
    keys: () => [...headers.keys()],
  };
}
