/**
 * Both sides of the bus call: what `@hone/messaging` is for a service that asks another one.
 *
 *   node bench/src/programs/bus-call.ts answer|ask --spans URL [--calls 10000]
 *
 * A call is a BatchRequest with 2 KiB of text, answered by a BatchReply with the same text: protobuf both ways, trace
 * context in the headers, a client span around the question and a server span around the answer. A round asks all calls
 * at once and waits for all answers.
 *
 * HONE_NATS_URL says where the bus is: an address with a password does not stand in arguments, which ps shows.
 */

import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import { connectBus, request, respond } from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { SpanKind, startTelemetry, withSpan } from "@hone/telemetry";
import { answerRounds } from "./round-loop.ts";

const NATS_URL = process.env.HONE_NATS_URL ?? "";
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    spans: { type: "string", default: "" },
    calls: { type: "string", default: "10000" },
  },
});
const SUBJECT = "bench.call";
const BODY_BYTES = 2_048;
const CALL_TIMEOUT_MS = 60_000;
const side = positionals[0] === "answer" ? "answer" : "ask";

const telemetry = await startTelemetry({ serviceName: `bench-${side}`, tracerUrl: values.spans });
const bus = await connectBus({ url: NATS_URL, name: `bench-${side}` });
if (side === "answer") {
  const responder = respond(bus, SUBJECT, BatchRequestSchema, BatchReplySchema, {
    handle: ({ message, trace, reply }) =>
      withSpan("answer", { parent: trace, kind: SpanKind.SERVER }, () =>
        reply(create(BatchReplySchema, { tasks: [{ rowJson: message.sourceJson }] })),
      ),
    onError: (error) => {
      throw error;
    },
  });
  await answerRounds(async () => ({ cpuMs: cpuMs() }));
  await responder.drain();
} else {
  const calls = Number(values.calls);
  const text = "x".repeat(BODY_BYTES);
  await answerRounds(async () => {
    const cpuBefore = cpuMs();
    const begun = performance.now();
    const lengths = await Promise.all(Array.from({ length: calls }, () => ask(text)));
    const seconds = (performance.now() - begun) / 1_000;
    if (lengths.some((length) => length !== BODY_BYTES)) throw new Error("an answer is not what was asked");
    return { calls, seconds, cpuMs: cpuMs() - cpuBefore };
  });
}
await bus.close();
await telemetry.shutdown();

function ask(text: string): Promise<number> {
  return withSpan("ask", { parent: "root", kind: SpanKind.CLIENT }, async () => {
    const reply = await request(
      bus,
      SUBJECT,
      BatchRequestSchema,
      create(BatchRequestSchema, { sourceJson: text }),
      BatchReplySchema,
      { timeoutMs: CALL_TIMEOUT_MS },
    );
    return reply.tasks[0]?.rowJson.length ?? 0;
  });
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
