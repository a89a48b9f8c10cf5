/**
 * Both sides of a request over the bus with `@hone/messaging`.
 *
 *   node bench/src/programs/bus-call.ts answer|ask --spans URL [--calls 10000]
 *
 * A call is a BatchRequest with 2 KiB of text, answered by a BatchReply with the same text: protobuf both ways, trace
 * context in the headers, a client span around the request and a server span around the reply. A round sends all requests
 * at once and waits for all replies.
 *
 * HONE_NATS_URL is the address of the bus. It contains a password, so it is not an argument, which ps would show.
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
    if (lengths.some((length) => length !== BODY_BYTES)) throw new Error("a reply differs from its request");
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
