/**
 * Work through a stream as in Hone: rollout jobs of 2 KiB are published all at once, with acknowledgement, trace context and
 * duplicate check, and then consumed by `consumeWork`, decoded and acknowledged.
 *
 *   node bench/src/programs/bus-work.ts --spans URL [--messages 5000]
 *
 * HONE_NATS_URL is the address of the bus. It contains a password, so it is not an argument, which ps would show.
 */

import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import {
  connectBus,
  consumeWork,
  ensureTopology,
  publishStored,
  StreamName,
  subjects,
} from "@hone/messaging";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import { contextOf, startSpan, startTelemetry } from "@hone/telemetry";
import { answerRounds } from "./round-loop.ts";

const NATS_URL = process.env.HONE_NATS_URL ?? "";
const { values } = parseArgs({
  options: {
    spans: { type: "string", default: "" },
    messages: { type: "string", default: "5000" },
  },
});
const RUN = "bench";
const BODY_BYTES = 2_048;
/** The options with which agent-rollout consumes jobs. */
const CONCURRENCY = 1_000;
const PUBLISH_DEADLINE_MS = 60_000;
const count = Number(values.messages);
const subject = subjects.rolloutJob(RUN);
const agentConfigJson = "x".repeat(BODY_BYTES);
let published = 0;

const telemetry = await startTelemetry({ serviceName: "bench-work", tracerUrl: values.spans });
const bus = await connectBus({ url: NATS_URL, name: "bench-work" });
await ensureTopology(bus);
await answerRounds(async (word) => {
  const begun = performance.now();
  await (word === "publish" ? Promise.all(Array.from({ length: count }, publish)) : consume());
  return { perSecond: (count * 1_000) / (performance.now() - begun) };
});
await bus.close();
await telemetry.shutdown();

async function publish(): Promise<void> {
  const span = startSpan("job", { parent: "root" });
  const job = create(RolloutJobSchema, { runId: RUN, agentConfigJson });
  await publishStored(bus, subject, RolloutJobSchema, job, {
    messageId: `${RUN}-${process.pid}-${published++}`,
    deadlineMs: PUBLISH_DEADLINE_MS,
    trace: contextOf(span),
  });
  span.end();
}

async function consume(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let taken = 0;
  const consumer = consumeWork(bus, RolloutJobSchema, {
    stream: StreamName.jobs,
    durable: RUN,
    filter: subject,
    concurrency: CONCURRENCY,
    handle: async ({ trace }) => {
      startSpan("work", { parent: trace }).end();
      if (++taken === count) resolve();
    },
    onError: reject,
  });
  await promise;
  await consumer.drain();
}
