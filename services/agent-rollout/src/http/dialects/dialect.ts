/**
 * A wire format of the session server: one file each, one row each in `dialects.ts`.
 *
 * The server does what all have in common: the route, the credential, limits of size and number, the call itself,
 * server-sent events, heartbeats, disconnects, statuses and headers of failures. A dialect is pure: bytes to a
 * {@link SessionRequest}, and replies, events and failures to the bodies that its clients read.
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
  /** Below the session's URL. Clients POST there. */
  readonly path: `/v1/${string}`;
  /**
   * @param body the request's, at most a few MiB.
   * @throws {ApiRequestError} (of `@hone/service-kit`, as `parseBody` does) naming the parameter that is wrong.
   */
  parse(body: string, context: ParseContext): ParsedCall;
  /** Body of an answer other than 200. */
  failureBody(failure: SessionFailure): object;
}

/** What parsing may need beside the body. */
export interface ParseContext {
  /**
   * The conversation that ended with an answer of this session, that answer included, by the id of its
   * {@link ReplyHead}; undefined = there is none. For formats whose requests name an earlier answer.
   */
  readonly conversationUpTo: (replyId: string) => readonly ChatMessage[] | undefined;
}

export interface ParsedCall {
  readonly request: SessionRequest;
  /** Called once for each call; a writer may keep state between the events of its stream. */
  writer(head: ReplyHead): ReplyWriter;
}

/** What is known of an answer before it is made. */
export interface ReplyHead {
  /** Unique; letters and digits. Dialects put their prefix before it. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

export interface ReplyWriter {
  /** Body of an answer that is not streamed. */
  whole(reply: SessionReply): object;
  /** What an event is told as: none, one or several server-sent events. All that follows the answer comes with `end`. */
  events(event: ReplyEvent): readonly ServerSentEvent[];
  /** How a failure in the middle of a stream is told; nothing follows. */
  failure(failure: SessionFailure): readonly ServerSentEvent[];
  /** Sent while nothing else is. Absent = a comment. */
  readonly heartbeat?: ServerSentEvent;
}

export type { ServerSentEvent };
