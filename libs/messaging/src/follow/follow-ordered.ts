/** Reads a stream in order without a consumer, for services that may not create one (follow-messages.ts). */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { delay } from "@hone/core";
import type { Bus } from "../bus.ts";
import { UndecodableMessageError } from "../errors.ts";
import { extractTrace } from "../exchange/trace-headers.ts";
import { decodeBody } from "../payloads/payload.ts";
import { followMessages } from "./follow-messages.ts";
import { ENVELOPE_BYTES, type OrderedItem, type ReadOrderedOptions } from "./read-ordered.ts";

const RECOVERY_DELAY_MS = 250;

/**
 * Yields every message from a position on, in order and each once, until the signal aborts. After a lost connection it tries
 * again. Messages that cannot be decoded are reported and skipped.
 */
export async function* followOrdered<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  options: ReadOrderedOptions,
): AsyncGenerator<OrderedItem<MessageShape<Schema>>> {
  const { stream, filter, signal, onError } = options;
  let next = options.fromSequence ?? 1;
  while (!signal.aborted) {
    try {
      for await (const stored of followMessages(bus, { stream, filter, fromSequence: next, signal })) {
        const { subject, data, header: headers, seq } = stored;
        let message: MessageShape<Schema>;
        try {
          message = await decodeBody(bus, schema, { subject, data, headers });
        } catch (error) {
          if (!(error instanceof UndecodableMessageError)) throw error;
          next = seq + 1;
          onError?.(error);
          continue;
        }
        next = seq + 1;
        const bytes = data.length + ENVELOPE_BYTES;
        yield { message, subject, sequence: seq, bytes, trace: extractTrace(headers) };
      }
    } catch (error) {
      if (signal.aborted) return;
      onError?.(error);
      await delay(RECOVERY_DELAY_MS);
    }
  }
}
