/** Single messages of a stream, by their position. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { TerminalError } from "@hone/core";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { decodeBody } from "../payloads/payload.ts";
import type { StreamName } from "../streams/streams.ts";

/** A message that should be there is not, and will not come: it was purged, or a killed server has lost it. */
export class MissingMessageError extends TerminalError {
  constructor(stream: string, sequence: number) {
    super(
      "MISSING_MESSAGE",
      `Cannot read a message as ${stream} must hold it: current value is none at ${sequence}`,
    );
  }
}

/**
 * The messages at `sequences`, in that order.
 * @throws {MissingMessageError} when one is not there.
 * @throws {UndecodableMessageError} when one is another kind of message.
 * @throws {BusUnavailableError} when the bus is away.
 */
export function readMessages<Schema extends DescMessage>(
  bus: Bus,
  stream: StreamName,
  schema: Schema,
  sequences: readonly number[],
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
      return decodeBody(bus, schema, { subject, data, headers });
    }),
  );
}
