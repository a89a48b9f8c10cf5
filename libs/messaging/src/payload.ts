/**
 * Bodies of messages: protobuf, and the object store for what is larger than the server takes.
 *
 * A message whose body lies in the object store is empty and says so in its headers:
 *   hone-object   name of the object in the store PAYLOADS
 *   hone-digest   SHA-256 of the body, hexadecimal
 */

import { createHash } from "node:crypto";
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { PayloadTooLargeError, UndecodableMessageError } from "./errors.ts";
import { fetchObject, MAX_OBJECT_BYTES } from "./objects.ts";
import { PAYLOAD_STORE } from "./streams.ts";

const OBJECT_HEADER = "hone-object";
const DIGEST_HEADER = "hone-digest";
/** Left for the subject and the headers, which count towards the server's limit. */
export const HEADROOM_BYTES = 8_192;

/** A body ready to be published. */
export interface Body {
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
}

/**
 * Encodes a message; one that is too large for the server is put into the object store first.
 * @param nameObject names that object: unique per message, such as the subject with the message id.
 */
export async function encodeBody<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  message: MessageShape<Schema>,
  nameObject: () => string,
): Promise<Body> {
  const data = toBinary(schema, message);
  if (data.length + HEADROOM_BYTES <= bus.maxPayloadBytes()) return { data, headers: undefined };
  const objectName = nameObject();
  if (data.length > MAX_OBJECT_BYTES) {
    throw new PayloadTooLargeError(objectName, data.length, MAX_OBJECT_BYTES);
  }
  const store = await bus.objects.open(PAYLOAD_STORE);
  await store.putBlob({ name: objectName }, data);
  const pointer = headers();
  pointer.set(OBJECT_HEADER, objectName);
  pointer.set(DIGEST_HEADER, createHash("sha256").update(data).digest("hex"));
  return { data: new Uint8Array(0), headers: pointer };
}

/** Name of the object that a message points to, if it does. */
export function objectOf(from: MsgHdrs | undefined): string | undefined {
  return from?.get(OBJECT_HEADER) || undefined;
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
    name: object,
    digest: message.headers?.get(DIGEST_HEADER),
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
