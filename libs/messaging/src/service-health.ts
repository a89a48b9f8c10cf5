/**
 * Which services are there: one question, which every process of every service answers for itself.
 *
 * H1: the question costs one message and one answer a process, so it can be asked every few seconds.
 * H2: whoever asks learns of silence only: a process that is stopped, overloaded or cut off answers alike, not at all.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type HealthReply, HealthReplySchema, HealthRequestSchema } from "@hone/proto-gen/service";
import type { Bus } from "./bus.ts";
import { BusUnavailableError } from "./errors.ts";
import { type Responder, respond } from "./respond.ts";
import { ServiceName, subjects } from "./subjects.ts";

/** Several times what a busy event loop takes to answer. */
const ANSWER_TIMEOUT_MS = 2_000;

/** What a process says of itself. */
export type OwnHealth = Pick<HealthReply, "service" | "instanceId" | "isReady" | "reasons">;

/** Answers for this process. */
export function respondToHealth(
  bus: Bus,
  own: () => Promise<OwnHealth>,
  onError: (error: unknown) => void,
): Responder {
  return respond(bus, subjects.serviceHealth(), HealthRequestSchema, HealthReplySchema, {
    handle: async ({ reply }) => reply(create(HealthReplySchema, await own())),
    onError,
  });
}

/** Who answered, and of which service nobody did. */
export interface ServiceHealth {
  readonly replies: readonly OwnHealth[];
  readonly silent: readonly ServiceName[];
}

export interface AskHealthOptions {
  /** Services that are expected to answer. @default all */
  readonly expected?: readonly ServiceName[];
  /** @default 2_000 */
  readonly timeoutMs?: number;
}

/**
 * Asks all services; returns as soon as each that is expected was heard, and after the timeout at the latest.
 * @throws {BusUnavailableError} when the bus itself does not answer.
 */
export async function askHealth(bus: Bus, options: AskHealthOptions = {}): Promise<ServiceHealth> {
  const { expected = Object.values(ServiceName), timeoutMs = ANSWER_TIMEOUT_MS } = options;
  const subject = subjects.serviceHealth();
  const replies: OwnHealth[] = [];
  const missing = new Set<string>(expected);
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  let isBusThere = false;
  const inbox = bus.replies.open((answer) => {
    isBusThere = true;
    // The server's own answer: nobody listens at all.
    if (answer.data.length === 0 && answer.headers?.code === 503) return resolve();
    const reply = readReply(answer.data);
    if (reply === undefined) return;
    replies.push(reply);
    missing.delete(reply.service);
    if (missing.size === 0) resolve();
  });
  const timer = setTimeout(resolve, timeoutMs);
  try {
    bus.connection.publish(subject, toBinary(HealthRequestSchema, create(HealthRequestSchema)), {
      reply: inbox.subject,
    });
    // The server's PONG proves that it is there, also where no service answers.
    bus.connection.flush().then(
      () => {
        isBusThere = true;
      },
      () => undefined, // a lost connection: the timeout tells
    );
    await isOver;
  } finally {
    clearTimeout(timer);
    inbox.close();
  }
  if (!isBusThere) throw new BusUnavailableError(`hear anything for ${timeoutMs} ms`, subject);
  return { replies, silent: expected.filter((service) => missing.has(service)) };
}

/** Undefined for bytes that are no reply: whoever sent them did not answer. */
function readReply(bytes: Uint8Array): HealthReply | undefined {
  try {
    return fromBinary(HealthReplySchema, bytes);
  } catch {
    return undefined;
  }
}
