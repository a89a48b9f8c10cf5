/** Reads single messages of a stream by their positions. */

import { TerminalError } from "@hone/core";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { fetchBody } from "../payloads/payload.ts";
import type { StreamName } from "../streams/streams.ts";
import type { ReadBody } from "./read-ordered.ts";

/** A message is missing and will not come back: it was purged, or a killed server has lost it. */
export class MissingMessageError extends TerminalError {
  constructor(stream: string, sequence: number) {
    super(
      "MISSING_MESSAGE",
      `The stream ${stream} holds no message at position ${sequence}; it was purged or lost`,
    );
  }
}

/**
 * @returns the messages at `sequences`, in that order.
 * @throws {MissingMessageError} when one does not exist.
 * @throws {UndecodableMessageError} when one is another kind of message.
 * @throws {BusUnavailableError} when the bus does not answer.
 */
export function readMessages<Message>(
  bus: Bus,
  stream: StreamName,
  sequences: readonly number[],
  readBody: ReadBody<Message>,
): Promise<Message[]> {
  return Promise.all(
    sequences.map(async (sequence) => {
      const message = await bus.manager.streams
        .getMessage(stream, { seq: sequence })
        .catch((error: unknown) => {
          throw translateBusError(error, "read a message", stream);
        });
      if (message === null) throw new MissingMessageError(stream, sequence);
      const { subject, data, header: headers } = message;
      const body = await fetchBody(bus, { subject, data, headers });
      return (await readBody(body, subject)).message;
    }),
  );
}
