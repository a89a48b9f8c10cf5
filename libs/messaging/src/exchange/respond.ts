/**
 * Answering requests.
 *
 * R1: answers are sent only to subjects for answers. The requester names the reply subject, and could otherwise make the
 *     answering service publish where the requester itself may not, such as among the scored episodes.
 */

import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import type { Msg, Subscription } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { countAnswer } from "../bus-metrics.ts";
import { ReplySubjectError, UndecodableMessageError } from "../errors.ts";
import { decodeBody, encodeBody } from "../payloads/payload.ts";
import { BodyKind } from "../payloads/payload-stores.ts";
import { reportDead } from "../work/dead-letter.ts";
import { isReplySubject } from "./reply-inbox.ts";
import { extractTrace } from "./trace-headers.ts";

/** A request, with the function that answers it. */
export interface IncomingRequest<Request, Reply> {
  readonly message: Request;
  readonly subject: string;
  readonly trace: Context;
  /** Sends a message of the answer; a handler may send several. */
  reply(message: Reply): Promise<void>;
}

/** Options of {@link respond}. */
export interface RespondOptions<Request, Reply> {
  /** Replicas with the same name share the requests; without a name each replica gets every request. */
  readonly queue?: string;
  /** Answers a request. If it throws, `onError` is called and the requester runs into its own deadline. */
  readonly handle: (incoming: IncomingRequest<Request, Reply>) => Promise<void> | void;
  readonly onError: (error: unknown, subject: string) => void;
}

/** A running responder. */
export interface Responder {
  /** Accepts no new request and waits for the running ones. */
  drain(): Promise<void>;
}

/**
 * Answers the requests on a subject, all at the same time; a handler that has a limit refuses further requests in its reply.
 * Requests that cannot be decoded go to the stream DEAD.
 */
export function respond<Request extends DescMessage, Reply extends DescMessage>(
  bus: Bus,
  subject: string,
  requestSchema: Request,
  replySchema: Reply,
  options: RespondOptions<MessageShape<Request>, MessageShape<Reply>>,
): Responder {
  let numRunning = 0;
  /** Resolves when the last running request is done; exists only while draining. */
  let idle: PromiseWithResolvers<void> | undefined;
  const serve = async (message: Msg): Promise<void> => {
    numRunning++;
    const startedAt = performance.now();
    let result: "ok" | "failed" = "ok";
    try {
      const { reply = "" } = message; // the client gives an empty text if a message has no reply subject
      if (reply !== "" && !isReplySubject(reply)) throw new ReplySubjectError(reply); // R1
      const decoded = await decodeBody(bus, requestSchema, message);
      await options.handle({
        message: decoded,
        subject: message.subject,
        trace: extractTrace(message.headers),
        reply: async (reply) => {
          if (message.reply === undefined || bus.connection.isClosed()) return;
          const bytes = toBinary(replySchema, reply);
          if (bytes.length < bus.maxPayloadBytes() / 2) {
            message.respond(bytes);
          } else {
            const body = await encodeBody(bus, replySchema, reply, BodyKind.once);
            message.respond(body.data, body.headers === undefined ? {} : { headers: body.headers });
          }
        },
      });
    } catch (error) {
      result = "failed";
      if (error instanceof UndecodableMessageError) {
        await reportDead(bus, "REQUESTS", message, describeError(error));
      }
      options.onError(error, message.subject);
    } finally {
      countAnswer(message.subject, startedAt, result);
      if (--numRunning === 0) idle?.resolve();
    }
  };
  const subscription: Subscription = bus.connection.subscribe(subject, {
    ...(options.queue === undefined ? {} : { queue: options.queue }),
    callback: (error, message) => {
      if (error !== null) {
        options.onError(error, subject);
        return;
      }
      void serve(message);
    },
  });
  return {
    async drain() {
      if (!subscription.isClosed()) await subscription.drain();
      if (numRunning === 0) return;
      idle ??= Promise.withResolvers<void>();
      await idle.promise;
    },
  };
}
