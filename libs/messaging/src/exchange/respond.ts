/**
 * Answering requests.
 *
 * R1: an answer goes to a subject on which answers are heard, and nowhere else: whoever asks names it, and would have the
 *     answering service publish where it may not itself, such as a judge among the scored episodes.
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

/** A request with what its handler needs to answer. */
export interface IncomingRequest<Request, Reply> {
  readonly message: Request;
  readonly subject: string;
  readonly trace: Context;
  /** Sends a message of the answer; a handler may send several. */
  reply(message: Reply): Promise<void>;
}

/** Options of {@link respond}. */
export interface RespondOptions<Request, Reply> {
  /** Replicas that share the work give the same name; without one, each gets every request. */
  readonly queue?: string;
  /** Answers; its failure is logged through `onError` and the asker runs into its own deadline. */
  readonly handle: (incoming: IncomingRequest<Request, Reply>) => Promise<void> | void;
  readonly onError: (error: unknown, subject: string) => void;
}

/** A running responder. */
export interface Responder {
  /** Takes no new request and waits for those under way. */
  drain(): Promise<void>;
}

/**
 * Answers the requests on a subject, as many at once as come; a handler that must bound itself refuses in its reply.
 * What cannot be decoded goes to the stream DEAD.
 */
export function respond<Request extends DescMessage, Reply extends DescMessage>(
  bus: Bus,
  subject: string,
  requestSchema: Request,
  replySchema: Reply,
  options: RespondOptions<MessageShape<Request>, MessageShape<Reply>>,
): Responder {
  let numRunning = 0;
  /** Resolves when the last one that runs is done; there only for a drain. */
  let idle: PromiseWithResolvers<void> | undefined;
  const serve = async (message: Msg): Promise<void> => {
    numRunning++;
    const startedAt = performance.now();
    let result: "ok" | "failed" = "ok";
    try {
      const { reply = "" } = message; // the client gives an empty one where a message has none
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
