/**
 * Bodies in the object store PAYLOADS, read with bounds: what a pointer names may be gone, larger than it says, or
 * lack a part, and none of that may hold up the reader or fill its memory.
 */

import { createHash } from "node:crypto";
import { describeError } from "@hone/core";
import type { ObjectInfo, ObjectStore } from "@nats-io/obj";
import type { Bus } from "./bus.ts";
import { BusUnavailableError, translateBusError, UndecodableMessageError } from "./errors.ts";
import { nextMessage } from "./follow-messages.ts";
import { PAYLOAD_STORE } from "./streams.ts";
import { isSubjectToken } from "./subjects.ts";

/** Largest body: the longest episode of a run of ordinary size has a tenth of it, and several are in memory at once. */
export const MAX_OBJECT_BYTES = 256 * 1024 * 1024;

/** What a message says of the object that holds its body. */
export interface ObjectPointer {
  readonly name: string;
  /** SHA-256 of the body, hexadecimal. */
  readonly digest: string | undefined;
  /** Subject of the message, for errors. */
  readonly subject: string;
}

/**
 * Reads a body.
 * @throws {UndecodableMessageError} when it is gone, too large, incomplete or another one.
 * @throws {BusUnavailableError} when the server does not answer.
 */
export async function fetchObject(bus: Bus, pointer: ObjectPointer): Promise<Uint8Array> {
  const { name, digest, subject } = pointer;
  const refuse = (what: string, cause?: unknown) =>
    new UndecodableMessageError(subject, `its object "${name.slice(0, 200)}" ${what}`, { cause });
  let store: ObjectStore;
  try {
    store = await bus.objects.open(PAYLOAD_STORE);
  } catch (error) {
    throw new BusUnavailableError("open the object store", name, { cause: error });
  }
  try {
    const info = await store.info(name);
    if (info === null || info.deleted) throw refuse("is gone");
    if (info.size > MAX_OBJECT_BYTES)
      throw refuse(`says it has ${info.size} bytes, above ${MAX_OBJECT_BYTES}`);
    const data = await readBounded(bus, info, refuse);
    const found = createHash("sha256").update(data).digest("hex");
    if (found !== digest) throw refuse(`has another digest (${found})`);
    return data;
  } catch (error) {
    const translated = translateBusError(error, "fetch an object", name);
    if (translated instanceof BusUnavailableError || translated instanceof UndecodableMessageError)
      throw translated;
    throw refuse(`cannot be read (${describeError(error)})`, error);
  }
}

async function readBounded(
  bus: Bus,
  { nuid, chunks }: ObjectInfo,
  refuse: (what: string) => UndecodableMessageError,
): Promise<Uint8Array> {
  if (!isSubjectToken(nuid)) throw refuse("is described by something else");
  const parts: Uint8Array[] = [];
  let length = 0;
  let from = 1;
  for (let i = 0; i < chunks; i++) {
    const part = await nextMessage(bus, `OBJ_${PAYLOAD_STORE}`, `$O.${PAYLOAD_STORE}.C.${nuid}`, from);
    if (part === undefined) throw refuse("lacks some of its parts");
    from = part.seq + 1;
    length += part.data.length;
    if (length > MAX_OBJECT_BYTES) throw refuse(`has more than ${MAX_OBJECT_BYTES} bytes`);
    parts.push(part.data);
  }
  return Buffer.concat(parts, length);
}
