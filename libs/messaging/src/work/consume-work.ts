/**
 * Takes work from a stream: many messages at the same time, each acknowledged when its work is done.
 *
 * W1: a message is acknowledged only after its handler resolved; after a failure it is delivered again after a pause.
 * W2: this process holds at most `concurrency` messages; none waits in a local buffer.
 * W3: a message that takes long is reported as in progress, so that nobody else gets it while this process lives. If a report
 *     comes too late and the message is delivered here again, it is not begun twice.
 * W4: a message that cannot be decoded goes to DEAD with the reason, and is then acknowledged.
 * W5: a message that kills one process after another is set aside, if the consumer says how (poison-lane.ts).
 * W6: of a message in work only the decoded value is kept, not the received bytes (delivery.ts).
 * W7: a consumer whose position lies beyond its stream (stream-reset.ts) is created again, here or by the service that may do
 *     so (durables.ts); the messages of the stream are then delivered again.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { delay, describeError } from "@hone/core";
import type { Consumer, ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { UndecodableMessageError } from "../errors.ts";
import { extractTrace } from "../exchange/trace-headers.ts";
import { decodeBody, fetchBody } from "../payloads/payload.ts";
import { StreamsRole } from "../rights/streams-role.ts";
import {
  DEFAULT_ACK_WAIT_MS,
  DEFAULT_MAX_ACK_PENDING,
  makeDurable,
  untilDurable,
} from "../streams/durables.ts";
import type { StreamName } from "../streams/streams.ts";
import { consumerMetrics } from "./consumer-metrics.ts";
import { reportDead } from "./dead-letter.ts";
import { Delivery } from "./delivery.ts";
import { PoisonLane } from "./poison-lane.ts";

/** One piece of work. */
export interface WorkItem<Message> {
  readonly message: Message;
  readonly subject: string;
  /** Position in the stream. */
  readonly sequence: number;
  /** When the stream stored it: Unix milliseconds, by the clock of the bus. */
  readonly storedAtMs: number;
  /** 1 for the first delivery; more if an earlier receiver failed or died. */
  readonly deliveries: number;
  readonly trace: Context;
}

/** Options of {@link consumeWork}. */
export interface ConsumeWorkOptions<Message> {
  readonly stream: StreamName;
  /** Name of the shared consumer; replicas with the same name share the work. */
  readonly durable: string;
  readonly filter: string;
  /** Largest number of messages that this process works on at the same time (W2). */
  readonly concurrency: number;
  /** Largest number of messages in work over all replicas. @default 20_000 */
  readonly maxAckPending?: number;
  /** The messages of a dead process are delivered again after this time. @default 10_000 */
  readonly ackWaitMs?: number;
  /** Pause before a failed message is delivered again. @default 1_000 */
  readonly retryDelayMs?: number;
  readonly handle: (item: WorkItem<Message>) => Promise<void>;
  /** Handles a message that killed `deaths` processes; it is acknowledged afterwards (W5). Absent = it is delivered for ever. */
  readonly putAside?: (item: WorkItem<Message>, deaths: number) => Promise<void>;
  readonly onError: (error: unknown, item: { subject: string; sequence: number }) => void;
}

/** A running consumer. */
export interface WorkConsumer {
  /** Number of messages in work. */
  readonly inFlight: number;
  /** Takes no new messages and waits until those in work are done. */
  drain(): Promise<void>;
  /** Takes no new messages and returns those in work at once, so that others get them. */
  stop(): Promise<void>;
}

const DEFAULT_RETRY_DELAY_MS = 1_000;
/** Duration of one pull at the server; a stop ends it at once. */
const PULL_EXPIRES_MS = 10_000;
/**
 * A pull for a few messages costs as much as one for many. So the process pulls once it can take this many, or a quarter of
 * its concurrency if that is less. The number is small enough that a process with a concurrency of thousands stays busy.
 */
const WORTH_PULLING = 64;
/**
 * Largest number of messages of one pull. Messages that have arrived but are not begun cannot be reported as in progress (W3),
 * so all must be begun within a fraction of the acknowledgement time, even if beginning one takes milliseconds.
 */
const MAX_PULLED = 128;
/** After beginning messages for this long, the event loop gets a turn for timers and sockets (W3). */
const MAX_BUSY_MS = 20;
/** Pause after an error of the server. */
const RECOVERY_DELAY_MS = 250;

/** Starts to consume. Creates the shared consumer if it is missing, or waits until it exists (bus.streamsRole). */
export function consumeWork<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  options: ConsumeWorkOptions<MessageShape<Schema>>,
): WorkConsumer {
  return consumeDecoded(bus, (message) => decodeBody(bus, schema, message), options);
}

/** {@link consumeWork} for a stream whose bodies are not always protobuf: the handler gets the bytes. */
export function consumeBytes(bus: Bus, options: ConsumeWorkOptions<Uint8Array>): WorkConsumer {
  return consumeDecoded(bus, (message) => fetchBody(bus, message), options);
}

function consumeDecoded<Message>(
  bus: Bus,
  decode: (message: JsMsg) => Promise<Message>,
  options: ConsumeWorkOptions<Message>,
): WorkConsumer {
  const { concurrency, ackWaitMs = DEFAULT_ACK_WAIT_MS, retryDelayMs = DEFAULT_RETRY_DELAY_MS } = options;
  const stopping = new AbortController();
  const inWork = new Map<number, InWork>();
  const metrics = consumerMetrics(bus, options.stream, options.durable, () => inWork.size);
  const lane = new PoisonLane(bus, options.durable);
  let isGivingBack = false;
  let pull: ConsumerMessages | undefined;
  let onFree: (() => void) | undefined;

  /** @param received the message; it is removed once it is decoded (W6). */
  const work = async (entry: InWork, received: { message: JsMsg | undefined }): Promise<void> => {
    const { subject, sequence, storedAtMs, deliveries } = entry.delivery;
    const where = { subject, sequence };
    const itemOf = async (): Promise<WorkItem<Message>> => {
      const item = await decodeReceived(received);
      return { ...where, ...item, storedAtMs, deliveries };
    };
    try {
      const perform = async () => options.handle(await itemOf());
      const { putAside } = options;
      await (putAside === undefined
        ? perform()
        : lane.run(entry.delivery, {
            perform,
            putAside: async (deaths) => putAside(await itemOf(), deaths),
          }));
      if (!isGivingBack) entry.delivery.ack();
      metrics.consumed(deliveries);
    } catch (error) {
      options.onError(error, where);
      if (error instanceof UndecodableMessageError) {
        metrics.dead();
        await copyToDead(bus, entry.delivery, received.message, describeError(error));
        entry.delivery.term();
      } else if (!isGivingBack) {
        metrics.failed();
        entry.delivery.nak(retryDelayMs);
      }
    }
  };

  /** Decodes a message and drops its bytes (W6). */
  const decodeReceived = async (received: { message: JsMsg | undefined }) => {
    const { message } = received;
    if (message === undefined)
      throw new TypeError("The message was decoded already, and its bytes were dropped");
    const item = { message: await decode(message), trace: extractTrace(message.headers) };
    received.message = undefined;
    return item;
  };

  /** @param pulledAt time of the pull: the earliest time from which the server may count the acknowledgement time. */
  const start = (message: JsMsg, pulledAt: number): void => {
    const delivery = new Delivery(bus, message);
    const { subject, sequence } = delivery;
    const known = inWork.get(sequence);
    if (known !== undefined) {
      known.delivery = delivery;
      delivery.working(); // W3
      return;
    }
    const entry: InWork = { delivery, reportedAt: pulledAt, done: Promise.resolve() };
    inWork.set(sequence, entry);
    entry.done = work(entry, { message })
      .catch((error: unknown) => options.onError(error, { subject, sequence }))
      .finally(() => {
        inWork.delete(sequence);
        onFree?.();
      });
  };

  // Each message is reported at most once in half its acknowledgement time, as ten thousand in work cause many reports.
  const keepAlive = setInterval(() => {
    const now = performance.now();
    for (const entry of inWork.values()) {
      if (now - entry.reportedAt < ackWaitMs / 2) continue;
      entry.reportedAt = now;
      entry.delivery.working();
    }
  }, ackWaitMs / 4);

  const run = async (): Promise<void> => {
    let consumer: Consumer | undefined;
    const worthPulling = Math.max(1, Math.min(WORTH_PULLING, Math.floor(concurrency / 4)));
    while (!stopping.signal.aborted) {
      try {
        consumer ??= await openConsumer(bus, options, ackWaitMs, stopping.signal);
        while (!stopping.signal.aborted && concurrency - inWork.size < worthPulling) {
          await new Promise<void>((resolve) => {
            onFree = resolve;
          });
        }
        if (stopping.signal.aborted) return;
        const room = Math.min(concurrency - inWork.size, MAX_PULLED);
        const pulledAt = performance.now();
        pull = await consumer.fetch({ max_messages: room, expires: PULL_EXPIRES_MS });
        if (stopping.signal.aborted) void pull.close(); // stopped while it was opened; this ends the loop below
        let busySince = pulledAt;
        let count = 0;
        for await (const message of pull) {
          count++;
          start(message, pulledAt);
          if (performance.now() - busySince < MAX_BUSY_MS) continue;
          await nextTurn();
          busySince = performance.now();
        }
        if (count === 0) consumer = undefined; // W7: without messages, check the consumer
      } catch (error) {
        if (stopping.signal.aborted) return;
        options.onError(error, { subject: options.filter, sequence: 0 });
        consumer = undefined;
        await delay(RECOVERY_DELAY_MS);
      }
    }
  };
  const running = run();

  const stopPulling = async (): Promise<void> => {
    stopping.abort();
    onFree?.();
    await pull?.close();
    await running;
  };
  return {
    get inFlight() {
      return inWork.size;
    },
    async drain() {
      await stopPulling();
      await Promise.allSettled([...inWork.values()].map(({ done }) => done));
      clearInterval(keepAlive);
      metrics[Symbol.dispose]();
    },
    async stop() {
      isGivingBack = true;
      await stopPulling();
      clearInterval(keepAlive);
      metrics[Symbol.dispose]();
      for (const { delivery } of inWork.values()) delivery.nak();
    },
  };
}

/** A message in work. */
interface InWork {
  /** Its latest delivery, which the server waits for. */
  delivery: Delivery;
  /** Time of the last report to the server. */
  reportedAt: number;
  done: Promise<void>;
}

/**
 * Puts a copy of a message into DEAD.
 * @param message undefined if its bytes were dropped; it is then read from the stream, where it stays until acknowledged.
 */
async function copyToDead(
  bus: Bus,
  { stream, sequence }: Delivery,
  message: JsMsg | undefined,
  reason: string,
): Promise<void> {
  if (message !== undefined) return reportDead(bus, stream, message, reason, sequence);
  const stored = await bus.manager.streams.getMessage(stream, { seq: sequence });
  if (stored === null) return; // purged meanwhile
  const { subject, data, header: headers } = stored;
  await reportDead(bus, stream, { subject, data, headers }, reason, sequence);
}

async function openConsumer<Message>(
  bus: Bus,
  options: ConsumeWorkOptions<Message>,
  ackWaitMs: number,
  signal: AbortSignal,
): Promise<Consumer> {
  const { stream, durable, filter, maxAckPending = DEFAULT_MAX_ACK_PENDING } = options;
  if (bus.streamsRole === StreamsRole.make) {
    await makeDurable(bus, { stream, durable, filter, ackWaitMs, maxAckPending }); // W7
  } else {
    await untilDurable(bus, stream, durable, signal);
  }
  return bus.stream.consumers.get(stream, durable);
}
