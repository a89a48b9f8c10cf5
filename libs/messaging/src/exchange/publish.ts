/** Publishing into streams, which acknowledge each message that they stored. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { countPublished } from "../bus-metrics.ts";
import { StreamFullError } from "../errors.ts";
import { dropOwnObject } from "../payloads/objects.ts";
import { encodeBody, objectOf } from "../payloads/payload.ts";
import { bodyKindOf } from "../payloads/payload-stores.ts";
import { type Stored, type StoreOptions, storeMessage } from "./store-message.ts";

/** Options of {@link publishStored}. */
export type PublishOptions = Omit<StoreOptions, "onFailure">;

/**
 * Publishes into a stream and waits for its acknowledgement. Several calls may run at the same time; the stream stores them
 * in the order of the calls as long as none has to be retried.
 * @throws {StreamFullError | BusUnavailableError} when the deadline passes.
 */
export async function publishStored<Schema extends DescMessage>(
  bus: Bus,
  subject: string,
  schema: Schema,
  message: MessageShape<Schema>,
  options: PublishOptions = {},
): Promise<Stored> {
  const body = await encodeBody(bus, schema, message, bodyKindOf(subject), options);
  const object = objectOf(body.headers)?.name;
  if (object === undefined) return publishBytes(bus, subject, body.data, body.headers, options);
  let isRefused = true;
  const onFailure = (error: unknown) => {
    isRefused &&= error instanceof StreamFullError;
  };
  try {
    return await store(bus, subject, body, { ...options, onFailure });
  } catch (error) {
    // If any attempt may have stored the message although its acknowledgement was lost, the message needs its body.
    if (isRefused && error instanceof StreamFullError) dropOwnObject(bus, object);
    throw error;
  }
}

/** {@link publishStored} for a body that is already encoded. */
export async function publishBytes(
  bus: Bus,
  subject: string,
  data: Uint8Array | string,
  bodyHeaders: MsgHdrs | undefined,
  options: PublishOptions = {},
): Promise<Stored> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  return store(bus, subject, { data: bytes, headers: bodyHeaders }, options);
}

function store(...args: Parameters<typeof storeMessage>): Promise<Stored> {
  const stored = storeMessage(...args);
  const [, subject] = args;
  stored.then(
    () => countPublished(subject, true),
    () => countPublished(subject, false), // the caller gets the error
  );
  return stored;
}
