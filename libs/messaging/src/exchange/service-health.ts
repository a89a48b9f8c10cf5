/**
 * Which services are there: a question to each, which every process of the service answers for itself.
 *
 * H1: it costs one message a service and one answer a process, so it can be asked every few seconds. Each service has a
 *     subject of its own: an account of the bus has a subject from one other account only (bus-accounts.ts).
 * H2: whoever asks learns of silence only: a process that is stopped, overloaded or cut off answers alike, not at all.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type HealthReply, HealthReplySchema, HealthRequestSchema } from "@hone/proto-gen/service";
import type { Msg } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { BusUnavailableError } from "../errors.ts";
import { ServiceName, subjects } from "../subjects.ts";
import { type Responder, respond } from "./respond.ts";

/** Several times what a busy event loop takes to answer. */
const ANSWER_TIMEOUT_MS = 2_000;

/** What a process says of itself. */
export type OwnHealth = Pick<HealthReply, "service" | "instanceId" | "isReady" | "reasons">;

/** Answers for this process, which is one of `service`. */
export function respondToHealth(
  bus: Bus,
  service: string,
  own: () => Promise<Omit<OwnHealth, "service">>,
  onError: (error: unknown) => void,
): Responder {
  return respond(bus, subjects.serviceHealth(service), HealthRequestSchema, HealthReplySchema, {
    handle: async ({ reply }) => reply(create(HealthReplySchema, { service, ...(await own()) })),
    onError,
  });
}

/** Who answered, and of which service nobody did. */
export interface ServiceHealth {
  readonly replies: readonly OwnHealth[];
  readonly silent: readonly ServiceName[];
}

export interface AskHealthOptions {
  /** Services that are asked. @default all */
  readonly expected?: readonly ServiceName[];
  /** @default 2_000 */
  readonly timeoutMs?: number;
}

/**
 * Asks services; returns as soon as each was heard or is known to be away, and after the timeout at the latest.
 * @throws {BusUnavailableError} when the bus itself does not answer.
 */
export async function askHealth(bus: Bus, options: AskHealthOptions = {}): Promise<ServiceHealth> {
  const { expected = Object.values(ServiceName), timeoutMs = ANSWER_TIMEOUT_MS } = options;
  const replies: OwnHealth[] = [];
  const silent = new Set(expected);
  const awaited = new Set(expected);
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  if (awaited.size === 0) resolve();
  let isBusThere = false;
  const questions = expected.map((service) => {
    const inbox = bus.replies.open((answer) => {
      isBusThere = true;
      if (!isNobodyThere(answer)) {
        const reply = readReply(answer.data);
        if (reply?.service !== service) return; // whoever sent that did not answer
        replies.push(reply);
        silent.delete(service);
      }
      awaited.delete(service);
      if (awaited.size === 0) resolve();
    });
    return { subject: subjects.serviceHealth(service), inbox };
  });
  const timer = setTimeout(resolve, timeoutMs);
  try {
    const question = toBinary(HealthRequestSchema, create(HealthRequestSchema));
    for (const { subject, inbox } of questions) {
      bus.connection.publish(subject, question, { reply: inbox.subject });
    }
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
    for (const { inbox } of questions) inbox.close();
  }
  if (!isBusThere) {
    throw new BusUnavailableError(`hear anything for ${timeoutMs} ms`, subjects.serviceHealth("*"));
  }
  return { replies, silent: [...silent] };
}

/** The server's own answer where no process of the service listens. */
function isNobodyThere({ data, headers }: Msg): boolean {
  return data.length === 0 && headers?.code === 503;
}

/** Undefined for bytes that are no reply: whoever sent them did not answer. */
function readReply(bytes: Uint8Array): HealthReply | undefined {
  try {
    return fromBinary(HealthReplySchema, bytes);
  } catch {
    return undefined;
  }
}
