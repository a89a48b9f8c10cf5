/** The spans that real workers record of a call, and a check that recording them changes no result. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTelemetry, withSpan } from "@hone/telemetry";
import { startOtlpReceiver, torchPython } from "@hone/testing";
import { freshModel, minibatch } from "../domain/step/training-engine.suite.ts";
import { EXACT, GroupPool, torchHost, withoutRanks } from "../testing/torch-host.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";

const RANKS = [0, 1];
const { python, skip } = torchPython(process.env);
const host = torchHost(python, process.env);
const groups = new GroupPool();
after(() => groups.close());

test("the passes and the update of each rank are child spans of its call, in the trace of the step", {
  skip: skip || withoutRanks(RANKS.length, host),
  timeout: 3_600_000,
}, async () => {
  await using receiver = await startOtlpReceiver();
  const telemetry = await startTelemetry({ serviceName: "trainer", tracerUrl: receiver.url });
  const config = { ...freshModel, ...EXACT, worldSize: RANKS.length };
  const train = async (wrap: <T>(work: () => Promise<T>) => Promise<T>) => {
    const engine = new FsdpTrainingEngine(config, host, groups.start);
    try {
      await engine.initialise();
      const { loss, gradNorm } = await wrap(() => engine.trainMinibatch(minibatch(1)));
      return [loss, gradNorm];
    } finally {
      await engine.close();
    }
  };
  const silent = await train((work) => work());
  const told = await train((work) => withSpan("step.optimize", { parent: "root" }, work));
  await telemetry.shutdown();
  assert.deepEqual(told, silent);

  const { spans } = receiver;
  const caller = spans.find(({ name }) => name === "step.optimize");
  const calls = spans.filter(({ name }) => name === "worker.train");
  assert.deepEqual(calls.map(({ attributes }) => attributes["hone.worker.rank"]).sort(), RANKS);
  for (const call of calls) {
    assert.equal(call.parentSpanId, caller?.spanId);
    const parts = spans.filter(({ parentSpanId }) => parentSpanId === call.spanId).map(({ name }) => name);
    const named = [...new Set(parts)].sort();
    assert.deepEqual(named, [
      "worker.backward",
      "worker.forward",
      "worker.gather",
      "worker.norm",
      "worker.update",
    ]);
  }
  assert.deepEqual([...new Set(spans.map(({ traceId }) => traceId))], [caller?.traceId]);
});
