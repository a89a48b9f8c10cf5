/**
 * A response of server-sent events; each event is sent as soon as it is available.
 *
 * V1: Something is sent at least once per heartbeat interval, because proxies close silent connections.
 * V2: The producer of the events is informed when the client disconnects.
 */

import type { Context } from "hono";
import { streamSSE } from "hono/streaming";

export interface ServerSentEvent {
  /** Absent = none is named. */
  readonly event?: string;
  /** One line. */
  readonly data: string;
}

export interface EventStreamOptions {
  readonly events: AsyncIterable<ServerSentEvent>;
  /** The client went away (V2). */
  readonly onGone: () => void;
  /** The last events, for a client that is still there when the events end with an error. */
  readonly onError: (error: unknown) => readonly ServerSentEvent[];
  /** Sent while nothing else is. @default a comment */
  readonly heartbeat?: ServerSentEvent | undefined;
}

const HEARTBEAT_MS = 15_000;

/** The response to return. Its status is 200, so a request that is to be refused must be refused before this. */
export function answerWithEvents(c: Context, options: EventStreamOptions): Response {
  const { events, onGone, onError, heartbeat } = options;
  c.header("x-accel-buffering", "no");
  return streamSSE(c, async (stream) => {
    let isGone = false;
    stream.onAbort(() => {
      isGone = true;
      onGone();
    });
    const beat = () =>
      void (heartbeat === undefined ? stream.write(":\n\n") : stream.writeSSE({ ...heartbeat }));
    const timer = setInterval(beat, HEARTBEAT_MS); // V1
    try {
      for await (const event of events) {
        timer.refresh();
        await stream.writeSSE({ ...event });
      }
    } catch (error) {
      if (isGone) return;
      for (const event of onError(error)) await stream.writeSSE({ ...event });
    } finally {
      clearInterval(timer);
    }
  });
}
