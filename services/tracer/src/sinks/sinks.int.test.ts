import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { EventSinkDurable, type EventSinkName, StreamName } from "@hone/messaging";
import { RunEventSchema } from "@hone/proto-gen/run";
import { eventually, temporaryFolder } from "@hone/testing";
import { factOf, type RunFact } from "../domain/run-event.ts";
import { findPython, skipWithout } from "../testing/python.ts";
import { publishEvent, sampleMetrics } from "../testing/sample-run.ts";
import { startStack, type TracerStack } from "../testing/stack.ts";
import { tensorboardSink } from "./tensorboard/tensorboard-sink.ts";
import {
  type MetricsReceiver,
  otlpCurves,
  otlpName,
  startMetricsReceiver,
} from "./testing/metrics-receiver.ts";
import { type MlflowServer, startMlflow } from "./testing/mlflow-server.ts";
import { assertCurves, expectedCurves } from "./testing/sink.suite.ts";

/* Tracers that are killed, and a server of MLflow that is, in the middle of a run. */

const python = findPython("mlflow");
const RUN = "frozen-lake-1";
const STEPS = 60;
const FILE = "events.out.tfevents.hone";

describe("the sinks on a real bus", { timeout: 300_000, skip: skipWithout(python, "mlflow") }, () => {
  let stack: TracerStack;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let mlflow: MlflowServer;
  let receiver: MetricsReceiver;

  before(async () => {
    folder = await temporaryFolder("sinks");
    [stack, mlflow, receiver] = await Promise.all([
      startStack(Date.UTC(2026, 10, 20, 9)),
      startMlflow(python ?? "", folder.path),
      startMetricsReceiver(),
    ]);
  });
  after(async () => {
    await Promise.all([mlflow, receiver, stack].map((each) => each?.[Symbol.asyncDispose]()));
    await folder[Symbol.asyncDispose]();
  });

  const startTracer = () => tracerProcess({ ...stack.environment, ...sinkVariables() });
  const sinkVariables = () => ({
    HONE_TENSORBOARD_DIR: path.join(folder.path, "tensorboard"),
    HONE_MLFLOW_URL: mlflow.url,
    HONE_OTLP_METRICS_URL: receiver.url,
  });
  const behind = async (sink: EventSinkName) => {
    const info = await stack.bus.manager.consumers.info(StreamName.events, EventSinkDurable[sink]);
    return info.num_pending + info.num_ack_pending;
  };
  const caughtUp = (sink: EventSinkName) =>
    eventually(`${sink} to have all events`, async () => (await behind(sink)) === 0, { deadlineMs: 90_000 });

  test("curves are whole and nothing is doubled, through kills of tracers and of MLflow", async () => {
    let tracers = [startTracer(), startTracer()];
    await publish(stack, { case: "accepted", value: { requestSequence: 1n, configJson: '{"seed":7}' } }, 0);
    for (let step = 1; step <= STEPS; step++) {
      const metrics = sampleMetrics(step);
      await publish(
        stack,
        { case: "stepCompleted", value: { step, totalSteps: STEPS, version: step, metrics } },
        step,
      );
      if (step % 10 === 0) {
        const value = { version: step, mode: "greedy", episodes: 8, metrics: { success: step / STEPS } };
        await publish(stack, { case: "evaluated", value }, step);
      }
      await new Promise((resolve) => setTimeout(resolve, 60));
      if (step === 20) await mlflow.kill();
      if (step % 15 === 0) {
        // One of the two dies in the middle of what it writes, and another takes its place.
        const [oldest, ...others] = tracers;
        await oldest?.kill();
        tracers = [...others, startTracer()];
      }
    }
    // What waits for MLflow delays nothing else.
    await Promise.all((["database", "tensorboard", "otlpMetrics"] as const).map(caughtUp));
    assert.ok((await behind("mlflow")) > STEPS / 2, "MLflow was away, so its events wait on the bus");
    await mlflow.start();
    await caughtUp("mlflow");

    const facts = await storedFacts(stack);
    const expected = expectedCurves(facts);
    assert.equal(expected["env/success"]?.length, STEPS);
    const run = (await mlflow.run("hone", RUN)) ?? assert.fail("MLflow has no such run");
    assertCurves(await mlflow.curves(run.id), expected);
    const named = Object.entries(expected).map(([name, points]) => [otlpName(name), points]);
    assertCurves(otlpCurves(receiver, RUN), Object.fromEntries(named));

    const whole = tensorboardSink(path.join(folder.path, "undisturbed"));
    for (const fact of facts) await whole.write([fact]);
    const fileIn = (place: string) => readFile(path.join(folder.path, place, RUN, FILE));
    assert.deepEqual(await fileIn("tensorboard"), await fileIn("undisturbed"));
    await Promise.all(tracers.map((tracer) => tracer.kill()));
  });
});

function publish(stack: TracerStack, kind: Parameters<typeof publishEvent>[3], step: number): Promise<void> {
  return publishEvent(stack.bus, RUN, stack.run.startedAtMs + step * 1_000, kind);
}

/** The events as the stream has them. */
async function storedFacts({ bus }: TracerStack): Promise<RunFact[]> {
  const { state } = await bus.manager.streams.info(StreamName.events);
  const facts: RunFact[] = [];
  for (let sequence = state.first_seq; sequence <= state.last_seq; sequence++) {
    const message = await bus.manager.streams.getMessage(StreamName.events, { seq: sequence });
    const fact = message && factOf(fromBinary(RunEventSchema, message.data), sequence);
    if (fact !== null && fact !== undefined) facts.push(fact);
  }
  return facts;
}

/** A tracer in a process of its own. */
function tracerProcess(environment: Readonly<Record<string, string>>): { kill(): Promise<void> } {
  const main = path.join(import.meta.dirname, "../main.ts");
  const child: ChildProcess = spawn(process.execPath, [main], {
    env: { ...process.env, ...environment, HONE_HTTP_PORT: "0", HONE_LOG_LEVEL: "error" },
    stdio: "ignore",
  });
  return {
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
