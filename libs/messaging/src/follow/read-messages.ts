/** Reads single messages of a stream by their positions. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { TerminalError } from "@hone/core";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { decodeBytes, fetchBody } from "../payloads/payload.ts";
import type { StreamName } from "../streams/streams.ts";
import type { CompleteBody } from "./read-ordered.ts";

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
 * @param complete completes a body that points to another message.
 * @returns the messages at `sequences`, in that order.
 * @throws {MissingMessageError} when one does not exist.
 * @throws {UndecodableMessageError} when one is another kind of message.
 * @throws {BusUnavailableError} when the bus does not answer.
 */
export function readMessages<Schema extends DescMessage>(
  bus: Bus,
  stream: StreamName,
  schema: Schema,
  sequences: readonly number[],
  complete: CompleteBody = async (data) => data,
): Promise<MessageShape<Schema>[]> {
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
      return decodeBytes(schema, await complete(body, subject), subject);
    }),
  );
}
