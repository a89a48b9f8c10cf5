import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { SinkUnavailableError } from "../../errors.ts";
import {
  type MetricsReceiver,
  otlpCurves,
  otlpName,
  startMetricsReceiver,
} from "../testing/metrics-receiver.ts";
import { runFacts, sinkSuite } from "../testing/sink.suite.ts";
import { otlpMetricsSink } from "./otlp-metrics-sink.ts";

let receiver: MetricsReceiver;
before(async () => {
  receiver = await startMetricsReceiver();
});
after(() => receiver[Symbol.asyncDispose]());

const { signal } = new AbortController();
const headers = { "x-key": "k" };
const openSink = (url = receiver.url) => otlpMetricsSink({ url, headers, logger: silentLogger(), signal });

sinkSuite(
  "the sink of OTLP metrics",
  () => ({ open: () => openSink(), read: async (runId) => otlpCurves(receiver, runId), nameOf: otlpName }),
  { hasTimesOnly: true },
);

describe("otlpMetricsSink()", () => {
  test("sends its headers, and takes an address with or without its path", async () => {
    const [, , step] = runFacts("headers-1", 1);
    if (step === undefined) assert.fail("no step");
    await openSink(`${receiver.url}/`).write([step]);
    await openSink(`${receiver.url}/v1/metrics`).write([step]);
    assert.deepEqual(
      receiver.headers.slice(-2).map((each) => [each["x-key"], each["content-type"]]),
      [
        ["k", "application/x-protobuf"],
        ["k", "application/x-protobuf"],
      ],
    );
  });

  test("points that the receiver refuses are dropped, and sent again after any other failure", async () => {
    const [, , step] = runFacts("refused-1", 1);
    if (step === undefined) assert.fail("no step");
    receiver.answer(503);
    await assert.rejects(openSink().write([step]), SinkUnavailableError);
    receiver.answer(400);
    await openSink().write([step]);
    receiver.answer(200);
    assert.deepEqual(receiver.values("refused-1"), {});
  });
});
