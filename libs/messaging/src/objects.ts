/**
 * Bodies in the object store PAYLOADS, read with bounds: what a pointer names may be gone, larger than it says, or
 * lack a part, and none of that may hold up the reader or fill its memory.
 */

import { createHash } from "node:crypto";
import { DeadlineError, deadline, describeError } from "@hone/core";
import type { ObjectInfo, ObjectStore } from "@nats-io/obj";
import type { Bus } from "./bus.ts";
import { BusUnavailableError, translateBusError, UndecodableMessageError } from "./errors.ts";
import { PAYLOAD_STORE } from "./streams.ts";

/** Largest body: the longest episode of a run of ordinary size has a tenth of it, and several are in memory at once. */
export const MAX_OBJECT_BYTES = 256 * 1024 * 1024;
/** Longest silence while an object is read. A healthy server sends its parts, 128 KiB each, within milliseconds. */
const OBJECT_SILENCE_MS = 5_000;

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
  let info: ObjectInfo | null = null;
  try {
    info = await store.info(name);
    if (info === null || info.deleted) throw refuse("is gone");
    if (info.size > MAX_OBJECT_BYTES)
      throw refuse(`says it has ${info.size} bytes, above ${MAX_OBJECT_BYTES}`);
    const data = await readBounded(store, name, refuse);
    const found = createHash("sha256").update(data).digest("hex");
    if (found !== digest) throw refuse(`has another digest (${found})`);
    return data;
  } catch (error) {
    const translated = translateBusError(error, "fetch an object", name);
    if (error instanceof DeadlineError && info !== null && !(await isComplete(bus, info))) {
      throw refuse("lacks some of its parts", error);
    }
    if (translated instanceof BusUnavailableError || translated instanceof UndecodableMessageError)
      throw translated;
    throw refuse(`cannot be read (${describeError(error)})`, error);
  }
}

async function readBounded(
  store: ObjectStore,
  name: string,
  refuse: (what: string) => UndecodableMessageError,
): Promise<Uint8Array> {
  const found = await store.get(name);
  if (found === null) throw refuse("is gone");
  // Whatever the library makes of a part that never comes is told by the reader below.
  found.error.catch(() => undefined);
  const reader = found.data.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await deadline(`a part of the object ${name}`, OBJECT_SILENCE_MS, () =>
        reader.read(),
      );
      if (done) return Buffer.concat(chunks, length);
      length += value.length;
      if (length > MAX_OBJECT_BYTES) throw refuse(`has more than ${MAX_OBJECT_BYTES} bytes`);
      chunks.push(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Whether the server has every part of an object; a silent one has, as far as anybody knows. */
async function isComplete(bus: Bus, { nuid, chunks }: ObjectInfo): Promise<boolean> {
  try {
    const subject = `$O.${PAYLOAD_STORE}.C.${nuid}`;
    const { state } = await bus.manager.streams.info(`OBJ_${PAYLOAD_STORE}`, { subjects_filter: subject });
    return (state.subjects?.[subject] ?? 0) >= chunks;
  } catch {
    return true;
  }
}
