/**
 * Bodies of messages: protobuf, and the object store for what is larger than the server takes.
 *
 * A message whose body lies in the object store is empty and says so in its headers:
 *   hone-store    bucket of the object, one of payload-stores.ts; without it, the one of older releases
 *   hone-object   name of the object there
 *   hone-digest   SHA-256 of the body, hexadecimal
 *   hone-size     bytes of the body; not with the bucket of older releases
 */

import { createHash } from "node:crypto";
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { PayloadTooLargeError, UndecodableMessageError } from "../errors.ts";
import type { Body } from "../exchange/exchange.ts";
import type { StoreOptions } from "../exchange/store-message.ts";
import { fetchObject, MAX_OBJECT_BYTES, type ObjectPlace, putObject } from "./objects.ts";
import { type BodyKind, OLD_PAYLOAD_STORE } from "./payload-stores.ts";

const STORE_HEADER = "hone-store";
const OBJECT_HEADER = "hone-object";
const DIGEST_HEADER = "hone-digest";
const SIZE_HEADER = "hone-size";
/** Left for the subject and the headers, which count towards the server's limit. */
export const HEADROOM_BYTES = 8_192;

/**
 * Encodes a message; one that is too large for the server is put into the object store first.
 * @param kind how long a body is needed that lies there.
 * @throws {PayloadTooLargeError} when no reader would take it.
 * @throws {PayloadStoreFullError | BusUnavailableError} when it could not be put there within its deadline.
 */
export async function encodeBody<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  message: MessageShape<Schema>,
  kind: BodyKind,
  options: Pick<StoreOptions, "deadlineMs" | "signal"> = {},
): Promise<Body> {
  const data = toBinary(schema, message);
  if (data.length + HEADROOM_BYTES <= bus.maxPayloadBytes()) return { data, headers: undefined };
  if (data.length > MAX_OBJECT_BYTES) {
    throw new PayloadTooLargeError(schema.typeName, data.length, MAX_OBJECT_BYTES);
  }
  const name = await putObject(bus, kind, data, options);
  const pointer = headers();
  pointer.set(STORE_HEADER, bus.payloadStore);
  pointer.set(OBJECT_HEADER, name);
  pointer.set(DIGEST_HEADER, createHash("sha256").update(data).digest("hex"));
  pointer.set(SIZE_HEADER, String(data.length));
  return { data: new Uint8Array(0), headers: pointer };
}

/** Where the body of a message lies that is not in the message itself. */
export function objectOf(from: MsgHdrs | undefined): ObjectPlace | undefined {
  const name = from?.get(OBJECT_HEADER);
  return name ? { store: from?.get(STORE_HEADER) || OLD_PAYLOAD_STORE, name } : undefined;
}

/**
 * Decodes a message, fetching its body where it lies in the object store.
 * @throws {UndecodableMessageError} when the bytes are no such message, or the object is gone or another.
 * @throws {BusUnavailableError} when the object store does not answer.
 */
export async function decodeBody<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  message: { subject: string; data: Uint8Array; headers?: MsgHdrs | undefined },
): Promise<MessageShape<Schema>> {
  // Nothing is awaited for a body that came with its message, which is nearly every one.
  const isWhole = objectOf(message.headers) === undefined;
  const data = isWhole ? message.data : await fetchBody(bus, message);
  return decodeBytes(schema, data, message.subject);
}

/**
 * The bytes of a message, from the object store where it points there.
 * @throws as {@link decodeBody} does.
 */
export async function fetchBody(
  bus: Bus,
  message: { subject: string; data: Uint8Array; headers?: MsgHdrs | undefined },
): Promise<Uint8Array> {
  const object = objectOf(message.headers);
  if (object === undefined) return message.data;
  return fetchObject(bus, {
    ...object,
    digest: message.headers?.get(DIGEST_HEADER),
    size: Number(message.headers?.get(SIZE_HEADER)),
    subject: message.subject,
  });
}

/**
 * Decodes a message that is known to be whole.
 * @throws {UndecodableMessageError} when the bytes are no such message.
 */
export function decodeBytes<Schema extends DescMessage>(
  schema: Schema,
  data: Uint8Array,
  subject: string,
): MessageShape<Schema> {
  try {
    return fromBinary(schema, data);
  } catch (error) {
    throw new UndecodableMessageError(subject, `it is no ${schema.typeName} (${describeError(error)})`, {
      cause: error,
    });
  }
}
