/**
 * Stores large bodies in the buckets of payload-stores.ts, in parts of one message each, with one subject per body.
 *
 * O1: a body is read with limits. The object of a pointer may be gone, larger than the pointer says, or lack a part, and none
 *     of these may block the reader or fill its memory.
 * O2: a part is sent after the previous one was stored, so that the parts are stored in order and once.
 */

import { createHash, randomBytes } from "node:crypto";
import { describeError } from "@hone/core";
import { headers } from "@nats-io/nats-core";
import type { ObjectInfo } from "@nats-io/obj";
import type { Bus } from "../bus.ts";
import {
  BusUnavailableError,
  PayloadStoreFullError,
  StreamFullError,
  translateBusError,
  UndecodableMessageError,
} from "../errors.ts";
import { type StoreOptions, storeMessage } from "../exchange/store-message.ts";
import { nextMessage } from "../follow/follow-messages.ts";
import { isSubjectToken } from "../subjects.ts";
import {
  type BodyKind,
  OLD_PAYLOAD_STORE,
  PAYLOAD_STORES,
  partsSubject,
  showBytes,
  streamOfStore,
} from "./payload-stores.ts";

/** Largest body. The longest episode of an ordinary run has a tenth of it, and several are in memory at the same time. */
export const MAX_OBJECT_BYTES = 256 * 1024 * 1024;
/** The server stores a part with one write, and returns it as base64, which is a third longer. */
const PART_BYTES = 512 * 1024;
/** With smaller parts a reader would need too many requests for a body (O1). */
const MIN_PART_BYTES = 1_024;
/** Names of objects: a kind and 128 random bits. */
const NAME = /^(?:once|job|episode|kept)\.[A-Za-z0-9_-]{1,64}$/;
const TOKEN_BYTES = 16;

/** The place of a body. */
export interface ObjectPlace {
  readonly store: string;
  readonly name: string;
}

/** The object that holds the body of a message, as the message describes it. */
export interface ObjectPointer extends ObjectPlace {
  /** SHA-256 of the body, hexadecimal. */
  readonly digest: string | undefined;
  /** Size of the body; not used for the bucket of older releases, which describes its objects itself. */
  readonly size: number;
  /** Subject of the message, for errors. */
  readonly subject: string;
}

/**
 * Stores a body in the bucket of this connection's user. If the bucket is full it waits, as every publisher does.
 * @returns the name of the object.
 * @throws {PayloadStoreFullError | BusUnavailableError} when the deadline passes; parts that were stored are dropped.
 */
export async function putObject(
  bus: Bus,
  kind: BodyKind,
  data: Uint8Array,
  { deadlineMs = 60_000, signal }: Pick<StoreOptions, "deadlineMs" | "signal"> = {},
): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  const name = `${kind}.${token}`;
  const subject = partsSubject(bus.payloadStore, name);
  const giveUpAt = performance.now() + deadlineMs;
  const size = Math.min(PART_BYTES, bus.maxPayloadBytes() >> 1);
  for (let from = 0; from < data.length; from += size) {
    const body = { data: data.subarray(from, from + size), headers: undefined };
    try {
      await storeMessage(bus, subject, body, {
        messageId: `${token}.${from}`, // O2
        deadlineMs: Math.max(0, giveUpAt - performance.now()),
        ...(signal !== undefined && { signal }),
      });
    } catch (error) {
      if (from > 0) dropOwnObject(bus, name);
      throw error instanceof StreamFullError ? await fullError(bus, data.length, error) : error;
    }
  }
  return name;
}

/**
 * Drops a body that this connection stored and that no message points to. This is not guaranteed; payload-janitor.ts removes
 * what remains.
 */
export function dropOwnObject(bus: Bus, name: string): void {
  if (bus.connection.isClosed()) return;
  const replacing = headers();
  // An empty message replaces all parts. A writer may do that in its own bucket, but may not purge.
  replacing.set("Nats-Rollup", "sub");
  bus.connection.publish(partsSubject(bus.payloadStore, name), new Uint8Array(0), { headers: replacing });
}

async function fullError(bus: Bus, bytes: number, cause: Error): Promise<Error> {
  const store = bus.payloadStore;
  const config = await bus.manager.streams.info(streamOfStore(store)).then(
    (info) => info.config,
    () => undefined,
  );
  const maxBytes = config?.max_bytes ?? 0;
  const limit = maxBytes > 0 ? showBytes(maxBytes) : "as much as the disk of the bus";
  return new PayloadStoreFullError(store, { size: showBytes(bytes), limit }, { cause });
}

/**
 * Reads a body.
 * @throws {UndecodableMessageError} when its bucket does not exist, or the body is gone, too large, incomplete or has another
 * digest.
 * @throws {BusUnavailableError} when the server does not answer.
 */
export async function fetchObject(bus: Bus, pointer: ObjectPointer): Promise<Uint8Array> {
  const { store, name, digest, subject } = pointer;
  const refuse: Refuse = (what, cause) =>
    new UndecodableMessageError(subject, `its object "${name.slice(0, 200)}" ${what}`, { cause });
  try {
    const data = await readFrom(bus, pointer, refuse);
    const found = createHash("sha256").update(data).digest("hex");
    if (found !== digest) throw refuse(`has another digest (${found})`);
    return data;
  } catch (error) {
    const translated = translateBusError(error, `fetch an object of ${store.slice(0, 200)}`, name);
    if (translated instanceof BusUnavailableError || translated instanceof UndecodableMessageError)
      throw translated;
    throw refuse(`cannot be read (${describeError(error)})`, error);
  }
}

type Refuse = (what: string, cause?: unknown) => UndecodableMessageError;

async function readFrom(bus: Bus, pointer: ObjectPointer, refuse: Refuse): Promise<Uint8Array> {
  const { store, name } = pointer;
  const isOld = store === OLD_PAYLOAD_STORE;
  if (!isOld && !PAYLOAD_STORES.includes(store)) {
    throw refuse(
      `is in the bucket "${store.slice(0, 200)}"; it must be in one of ${PAYLOAD_STORES.join(", ")}`,
    );
  }
  if (isOld) return readOld(bus, name, refuse);
  if (!NAME.test(name)) throw refuse("has a name that is not one of an object");
  const size = checkedSize(pointer.size, refuse);
  return readParts(bus, streamOfStore(store), partsSubject(store, name), { size, refuse });
}

function checkedSize(size: number, refuse: Refuse): number {
  if (size > MAX_OBJECT_BYTES) throw refuse(`claims to have ${size} bytes, above ${MAX_OBJECT_BYTES}`);
  if (!Number.isSafeInteger(size) || size <= 0) throw refuse(`claims to have ${size} bytes`);
  return size;
}

/** The layout of the client library's object store. */
async function readOld(bus: Bus, name: string, refuse: Refuse): Promise<Uint8Array> {
  const info = await oldInfo(bus, name);
  if (info === undefined || info.deleted) throw refuse("is gone");
  if (!isSubjectToken(info.nuid)) throw refuse("has an invalid description");
  const size = checkedSize(info.size, refuse);
  const parts = `$O.${OLD_PAYLOAD_STORE}.C.${info.nuid}`;
  return readParts(bus, streamOfStore(OLD_PAYLOAD_STORE), parts, { size, refuse });
}

async function oldInfo(bus: Bus, name: string): Promise<ObjectInfo | undefined> {
  const store = await bus.objects.open(OLD_PAYLOAD_STORE, false);
  return (await store.info(name)) ?? undefined;
}

/** Reads all parts of a body, with limits (O1). */
async function readParts(
  bus: Bus,
  stream: string,
  subject: string,
  { size, refuse }: { readonly size: number; readonly refuse: Refuse },
): Promise<Uint8Array> {
  let data = new Uint8Array(0);
  let length = 0;
  for (let from = 1; length < size; ) {
    const part = await nextMessage(bus, stream, subject, from);
    if (part === undefined) throw refuse(length === 0 ? "is gone" : "lacks some of its parts");
    const { data: bytes } = part; // a getter that decodes each time
    const end = length + bytes.length;
    if (end > size) throw refuse(`has more than the ${size} bytes that it claims`);
    if (end < size && bytes.length < MIN_PART_BYTES) {
      throw refuse(`has a part of ${bytes.length} bytes, below ${MIN_PART_BYTES}`);
    }
    if (length === 0) data = new Uint8Array(size); // allocated only once the first part was found
    data.set(bytes, length);
    length = end;
    from = part.seq + 1;
  }
  return data;
}

/** Removes a body from its bucket, which only the trainer may do (P3 in payload-stores.ts). */
export async function purgeObject(bus: Bus, { store, name }: ObjectPlace): Promise<void> {
  if (store !== OLD_PAYLOAD_STORE) {
    if (!PAYLOAD_STORES.includes(store) || !NAME.test(name)) return;
    await purgeSubject(bus, store, partsSubject(store, name));
    return;
  }
  const info = await oldInfo(bus, name);
  if (info === undefined || !isSubjectToken(info.nuid)) return;
  await purgeSubject(bus, store, `$O.${store}.C.${info.nuid}`);
  const token = Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  await purgeSubject(bus, store, `$O.${store}.M.${token}`);
}

/** Removes all messages on one subject of a bucket. */
export async function purgeSubject(bus: Bus, store: string, filter: string): Promise<void> {
  await bus.manager.streams.purge(streamOfStore(store), { filter });
}
