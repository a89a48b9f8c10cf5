/**
 * A wire format of the session server. Each has a file of its own and a row in `dialects.ts`.
 *
 * The server does what all of them have in common: the route, the credential, limits of size and number, the call itself,
 * server-sent events, heartbeats, disconnects, statuses and headers of failures. A dialect consists of pure functions, from
 * the body to a {@link SessionRequest}, and from replies, events and failures to the bodies that its clients read.
 */

import type { ServerSentEvent } from "@hone/service-kit";
import type { ChatMessage } from "@hone/tokenizer";
import type {
  ReplyEvent,
  SessionFailure,
  SessionReply,
  SessionRequest,
} from "../../domain/sessions/session-call.ts";

export interface Dialect {
  /** The path below the session's URL to which clients POST. */
  readonly path: `/v1/${string}`;
  /**
   * @param body the request's body, at most a few MiB.
   * @throws {ApiRequestError} (of `@hone/service-kit`, as `parseBody` does) that names the wrong parameter.
   */
  parse(body: string, context: ParseContext): ParsedCall;
  /** Makes the body of an answer with another status than 200. */
  failureBody(failure: SessionFailure): object;
}

/** What parsing may need besides the body. */
export interface ParseContext {
  /**
   * Gives the conversation up to an answer of this session, including the answer, by the id of its {@link ReplyHead};
   * undefined = there is none. For formats whose requests name an earlier answer.
   */
  readonly conversationUpTo: (replyId: string) => readonly ChatMessage[] | undefined;
}

export interface ParsedCall {
  readonly request: SessionRequest;
  /** Called once for each call; a writer may keep state between the events of its stream. */
  writer(head: ReplyHead): ReplyWriter;
}

/** What is known of an answer before it is generated. */
export interface ReplyHead {
  /** A unique id of letters and digits. Dialects add their prefix. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

export interface ReplyWriter {
  /** Makes the body of answers that are not streamed; there is one, unless the request asked for more. */
  whole(...replies: readonly [SessionReply, ...SessionReply[]]): object;
  /**
   * Turns an event into server-sent events, possibly none. Everything that follows the answers comes with the last `end`.
   * @param answer the index of the answer. @default 0
   */
  events(event: ReplyEvent, answer?: number): readonly ServerSentEvent[];
  /** Makes the last events of a stream that fails. */
  failure(failure: SessionFailure): readonly ServerSentEvent[];
  /** Sent while there is nothing else to send. Absent = a comment. */
  readonly heartbeat?: ServerSentEvent;
}

export type { ServerSentEvent };
