/**
 * Finds out which services run: a request to each service, which every process of the service answers.
 *
 * H1: it takes one message per service and one answer per process, so it can be repeated every few seconds. Each service has
 *     its own subject, as an account of the bus can import a subject from one other account only (bus-accounts.ts).
 * H2: a process that is stopped, overloaded or disconnected does not answer; the requester cannot distinguish these cases.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type HealthReply, HealthReplySchema, HealthRequestSchema } from "@hone/proto-gen/service";
import type { Msg } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { BusUnavailableError } from "../errors.ts";
import { ServiceName, subjects } from "../subjects.ts";
import { type Responder, respond } from "./respond.ts";

/** Several times as long as a busy event loop takes to answer. */
const ANSWER_TIMEOUT_MS = 2_000;

/** The health that a process reports. */
export type OwnHealth = Pick<HealthReply, "service" | "instanceId" | "isReady" | "reasons">;

/** Answers health requests for this process, which belongs to `service`. */
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

/** The answers, and the services of which no process answered. */
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
 * Asks services for their health. Returns once each answered or is known not to run, and after the timeout at the latest.
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
      if (!hasNoResponders(answer)) {
        const reply = readReply(answer.data);
        if (reply?.service !== service) return; // not an answer of this service
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
    // The server's PONG proves that the bus answers, even if no service does.
    bus.connection.flush().then(
      () => {
        isBusThere = true;
      },
      () => undefined, // the connection was lost; the timeout reports it
    );
    await isOver;
  } finally {
    clearTimeout(timer);
    for (const { inbox } of questions) inbox.close();
  }
  if (!isBusThere) {
    throw new BusUnavailableError(`get an answer within ${timeoutMs} ms`, subjects.serviceHealth("*"));
  }
  return { replies, silent: [...silent] };
}

/** Whether a message is the server's own answer, which says that no process of the service listens. */
function hasNoResponders({ data, headers }: Msg): boolean {
  return data.length === 0 && headers?.code === 503;
}

/** @returns undefined for bytes that are not a reply; they are ignored. */
function readReply(bytes: Uint8Array): HealthReply | undefined {
  try {
    return fromBinary(HealthReplySchema, bytes);
  } catch {
    return undefined;
  }
}
