/**
 * Measures the bus with the client library alone: messages of 2 KiB, all of a round at once.
 *
 *   node bench/src/programs/raw-bus.ts answer|work [--messages 5000]
 *
 * `answer` echoes requests. `work` sends requests, publishes into its own stream with acknowledgement, and consumes and
 * acknowledges these messages; the input of a round is "ask", "publish" or "consume".
 *
 * HONE_NATS_URL is the address of the bus. It contains a password, so it is not an argument, which ps would show.
 */

import { parseArgs } from "node:util";
import { splitCredentials } from "@hone/messaging";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { answerRounds } from "./round-loop.ts";

const NATS_URL = process.env.HONE_NATS_URL ?? "";
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    messages: { type: "string", default: "5000" },
  },
});
const [CALL_SUBJECT, STREAM, SUBJECT, DURABLE] = ["raw.call", "RAW", "raw.work", "raw"];
const BODY = new Uint8Array(2_048).fill(120);
const TIMEOUT_MS = 60_000;
/** Messages in work at once, as many as agent-rollout has. */
const MAX_IN_WORK = 1_000;
const count = Number(values.messages);

// Stack traces of requests are turned off, so that the library runs at its fastest.
const { servers, user = "", password = "" } = splitCredentials(NATS_URL);
const connection = await connect({ servers, user, pass: password, noAsyncTraces: true });
if (positionals[0] === "answer") {
  connection.subscribe(CALL_SUBJECT, { callback: (_error, message) => void message.respond(message.data) });
  await connection.flush();
  await answerRounds(async () => ({}));
} else {
  const client = jetstream(connection);
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: STREAM, subjects: [SUBJECT] });
  await manager.consumers.add(STREAM, {
    durable_name: DURABLE,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 2 * MAX_IN_WORK,
  });
  const rounds: Readonly<Record<string, () => Promise<unknown>>> = {
    ask: () => all(() => connection.request(CALL_SUBJECT, BODY, { timeout: TIMEOUT_MS })),
    publish: () => all(() => client.publish(SUBJECT, BODY, { timeout: TIMEOUT_MS })),
    async consume() {
      const consumer = await client.consumers.get(STREAM, DURABLE);
      let taken = 0;
      for await (const message of await consumer.consume({ max_messages: MAX_IN_WORK })) {
        message.ack();
        if (++taken === count) break;
      }
      await connection.flush();
    },
  };
  await answerRounds(async (word) => {
    const round = rounds[word];
    if (round === undefined)
      throw new RangeError(`there is no round ${word}; it must be ask, publish or consume`);
    const begun = performance.now();
    await round();
    return { perSecond: (count * 1_000) / (performance.now() - begun) };
  });
}
await connection.close();

function all(one: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, one));
}
