/**
 * Bodies of messages: protobuf, with the object store for bodies that are too large for a message.
 *
 * A message whose body is in the object store is empty and has these headers:
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
/** Space for the subject and the headers, which count towards the server's limit. */
export const HEADROOM_BYTES = 8_192;

/**
 * Encodes a message. A body that is too large for the server is first put into the object store.
 * @param kind decides how long a body in the object store is kept.
 * @throws {PayloadTooLargeError} when no reader would accept it.
 * @throws {PayloadStoreFullError | BusUnavailableError} when it could not be stored within its deadline.
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

/** @returns the place of a message's body in the object store; undefined if the body is in the message itself. */
export function objectOf(from: MsgHdrs | undefined): ObjectPlace | undefined {
  const name = from?.get(OBJECT_HEADER);
  return name ? { store: from?.get(STORE_HEADER) || OLD_PAYLOAD_STORE, name } : undefined;
}

/** A message as a stream holds it: its body, or the headers that say where the body is. */
export interface StoredMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs | undefined;
}

/**
 * Decodes a message, and fetches its body if that is in the object store.
 * @throws {UndecodableMessageError} when the bytes are not such a message, or the object is gone or another one.
 * @throws {BusUnavailableError} when the object store does not answer.
 */
export async function decodeBody<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  message: StoredMessage,
): Promise<MessageShape<Schema>> {
  // A body that came with its message, as nearly all do, is decoded without waiting.
  const isWhole = objectOf(message.headers) === undefined;
  const data = isWhole ? message.data : await fetchBody(bus, message);
  return decodeBytes(schema, data, message.subject);
}

/**
 * @returns the bytes of a message, from the object store if the message points there.
 * @throws the same as {@link decodeBody}.
 */
export async function fetchBody(bus: Bus, message: StoredMessage): Promise<Uint8Array> {
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
 * Decodes a body that is complete.
 * @throws {UndecodableMessageError} when the bytes are not such a message.
 */
export function decodeBytes<Schema extends DescMessage>(
  schema: Schema,
  data: Uint8Array,
  subject: string,
): MessageShape<Schema> {
  try {
    return fromBinary(schema, data);
  } catch (error) {
    throw new UndecodableMessageError(subject, `it is not a ${schema.typeName} (${describeError(error)})`, {
      cause: error,
    });
  }
}
