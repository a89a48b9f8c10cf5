/** Typed key-value buckets. */

import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { delay, describeError } from "@hone/core";
import type { StoredMsg } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { Bus } from "../bus.ts";
import { RevisionConflictError, translateBusError, UndecodableMessageError } from "../errors.ts";
import { followMessages, latestMessage, presentMessages } from "../follow/follow-messages.ts";
import { decodeBytes } from "../payloads/payload.ts";
import { reportDead } from "../work/dead-letter.ts";
import type { BucketName } from "./streams.ts";

/** A value, with its revision for compare-and-set. */
export interface BucketEntry<Value> {
  readonly key: string;
  readonly value: Value;
  readonly revision: number;
}

/** A change seen by a watcher; a deleted or expired key has no value. */
export interface BucketChange<Value> {
  readonly key: string;
  readonly value: Value | undefined;
  readonly revision: number;
}

/** One bucket. Every method throws BusUnavailableError when the server does not answer. */
export interface Bucket<Value> {
  /** @throws {UndecodableMessageError} when the stored bytes are not such a value. */
  get(key: string): Promise<BucketEntry<Value> | undefined>;
  /** The revision of a key, also if its value cannot be decoded; 0 if the key does not exist. */
  revisionOf(key: string): Promise<number>;
  /** All keys with their values, except those that cannot be decoded. */
  entries(): Promise<BucketEntry<Value>[]>;
  /** Sets a key, whatever its present value. @returns the new revision. */
  put(key: string, value: Value): Promise<number>;
  /**
   * Sets a key only if it still has `revision`; 0 = only if it does not exist.
   * @returns the new revision.
   * @throws {RevisionConflictError} when another writer was first.
   */
  compareAndSet(key: string, value: Value, revision: number): Promise<number>;
  /**
   * Removes a key.
   * @param revision only if the key still has it; absent = whatever its present value.
   * @throws {RevisionConflictError} when the key has another revision.
   */
  delete(key: string, revision?: number): Promise<void>;
  /**
   * Yields the present values, then every change until the signal aborts. After a lost connection it goes on, and may yield
   * present values again. A value that cannot be decoded goes to DEAD and is skipped.
   * @param below only keys that begin with this and a full stop; absent = all.
   */
  watch(
    signal: AbortSignal,
    onError?: (error: unknown) => void,
    below?: string,
  ): AsyncGenerator<BucketChange<Value>>;
}

const RECOVERY_DELAY_MS = 250;

/** Opens a bucket that {@link ensureTopology} created. */
export async function openBucket<Schema extends DescMessage>(
  bus: Bus,
  name: BucketName,
  schema: Schema,
): Promise<Bucket<MessageShape<Schema>>> {
  const store: KV = await guarded("open a bucket", name, () => bus.keyValue.open(name));
  const decode = (key: string, bytes: Uint8Array) => decodeBytes(schema, bytes, `${name}/${key}`);
  const stream = `KV_${name}`;
  const subjectPrefix = `$KV.${name}.`;
  const keyOf = ({ subject }: StoredMsg) => subject.slice(subjectPrefix.length);
  const find = (key: string) => latestMessage(bus, stream, `${subjectPrefix}${key}`);
  const entryOf = (stored: StoredMsg) => {
    const key = keyOf(stored);
    return { key, value: decode(key, stored.data), revision: stored.seq };
  };
  const get = async (key: string) => {
    const stored = await guarded("read a key", key, () => find(key));
    return stored === undefined || isDeleted(stored) ? undefined : entryOf(stored);
  };
  /** @returns the change, or undefined if it cannot be decoded; throwing would make the watcher read it again and again. */
  const readable = async (
    stored: StoredMsg,
    onError: ((error: unknown) => void) | undefined,
  ): Promise<BucketChange<MessageShape<Schema>> | undefined> => {
    const [key, revision] = [keyOf(stored), stored.seq];
    try {
      return isDeleted(stored) ? { key, revision, value: undefined } : entryOf(stored);
    } catch (error) {
      if (!(error instanceof UndecodableMessageError)) throw error;
      onError?.(error);
      const letter = { subject: `${name}/${key}`, data: stored.data };
      await reportDead(bus, name, letter, describeError(error), revision);
      return undefined;
    }
  };
  return {
    get,
    entries: () =>
      guarded("list keys", name, async () => {
        const found = [];
        for await (const stored of presentMessages(bus, stream, `${subjectPrefix}>`)) {
          try {
            if (!isDeleted(stored)) found.push(entryOf(stored));
          } catch (error) {
            if (!(error instanceof UndecodableMessageError)) throw error;
          }
        }
        return found;
      }),
    async revisionOf(key) {
      const stored = await guarded("read a key", key, () => find(key));
      return stored === undefined || isDeleted(stored) ? 0 : stored.seq;
    },
    put: (key, value) => guarded("write a key", key, () => store.put(key, toBinary(schema, value))),
    async compareAndSet(key, value, revision) {
      const bytes = toBinary(schema, value);
      const putAt = (previousSeq: number) => store.put(key, bytes, { previousSeq });
      try {
        try {
          return await putAt(revision);
        } catch (error) {
          if (revision !== 0 || !isConflict(error)) throw error;
          // A deleted key still has a message that marks it as deleted, with a revision of its own.
          const stored = await find(key);
          if (stored === undefined || !isDeleted(stored)) throw error;
          return await putAt(stored.seq);
        }
      } catch (error) {
        const translated = translateBusError(error, "write a key", key);
        throw translated instanceof RevisionConflictError
          ? new RevisionConflictError(key, { cause: error })
          : translated;
      }
    },
    async delete(key, revision) {
      try {
        await store.delete(key, revision === undefined ? {} : { previousSeq: revision });
      } catch (error) {
        const translated = translateBusError(error, "delete a key", key);
        throw translated instanceof RevisionConflictError
          ? new RevisionConflictError(key, { cause: error })
          : translated;
      }
    },
    async *watch(signal, onError, below) {
      const filter = `${subjectPrefix}${below === undefined ? "" : `${below}.`}>`;
      while (!signal.aborted) {
        try {
          for await (const stored of followMessages(bus, { stream, filter, signal })) {
            const change = await readable(stored, onError);
            if (change !== undefined) yield change;
          }
        } catch (error) {
          if (signal.aborted) return;
          onError?.(error);
        }
        if (!signal.aborted) await delay(RECOVERY_DELAY_MS);
      }
    },
  };
}

/** Whether a message marks its key as deleted. */
function isDeleted({ header }: StoredMsg): boolean {
  return header.get("KV-Operation") !== "";
}

function isConflict(error: unknown): boolean {
  return translateBusError(error, "", "") instanceof RevisionConflictError;
}

async function guarded<T>(action: string, subject: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translateBusError(error, action, subject);
  }
}
