/** Typed key-value buckets. */

import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { delay, describeError } from "@hone/core";
import type { KV, KvWatchEntry } from "@nats-io/kv";
import type { QueuedIterator } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { reportDead } from "./dead-letter.ts";
import { RevisionConflictError, translateBusError, UndecodableMessageError } from "./errors.ts";
import { decodeBytes } from "./payload.ts";
import type { BucketName } from "./streams.ts";

/** A value with the revision that compare-and-set needs. */
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
  /** @throws {UndecodableMessageError} when somebody put there what is no such value. */
  get(key: string): Promise<BucketEntry<Value> | undefined>;
  /** Revision of a key, whatever lies there; 0 = there is no such key. */
  revisionOf(key: string): Promise<number>;
  /** Every key with its value, but for those that cannot be decoded. */
  entries(): Promise<BucketEntry<Value>[]>;
  /** Sets without asking what was there. @returns the new revision. */
  put(key: string, value: Value): Promise<number>;
  /**
   * Sets only where the key still has `revision`; 0 = only where there is no such key.
   * @returns the new revision.
   * @throws {RevisionConflictError} when another writer was first.
   */
  compareAndSet(key: string, value: Value, revision: number): Promise<number>;
  delete(key: string): Promise<void>;
  /**
   * The present values, then every change, for as long as the signal allows. Lost connections are mended, after
   * which present values may come again. A value that cannot be decoded goes to DEAD and is passed over.
   */
  watch(signal: AbortSignal, onError?: (error: unknown) => void): AsyncGenerator<BucketChange<Value>>;
}

const RECOVERY_DELAY_MS = 250;

/** Opens a bucket that {@link ensureTopology} made. */
export async function openBucket<Schema extends DescMessage>(
  bus: Bus,
  name: BucketName,
  schema: Schema,
): Promise<Bucket<MessageShape<Schema>>> {
  const store: KV = await guarded("open a bucket", name, () => bus.keyValue.open(name));
  const decode = (key: string, bytes: Uint8Array) => decodeBytes(schema, bytes, `${name}/${key}`);
  const get = async (key: string) => {
    const entry = await guarded("read a key", key, () => store.get(key));
    if (entry === null || entry.operation !== "PUT") return undefined;
    return { key, value: decode(key, entry.value), revision: entry.revision };
  };
  /** The change, or undefined where nobody can read it: watching again would only meet it again. */
  const readable = async (
    entry: KvWatchEntry,
    onError: ((error: unknown) => void) | undefined,
  ): Promise<BucketChange<MessageShape<Schema>> | undefined> => {
    const { key, revision } = entry;
    try {
      return { key, revision, value: entry.operation === "PUT" ? decode(key, entry.value) : undefined };
    } catch (error) {
      if (!(error instanceof UndecodableMessageError)) throw error;
      onError?.(error);
      await reportDead(
        bus,
        name,
        { subject: `${name}/${key}`, data: entry.value },
        describeError(error),
        revision,
      );
      return undefined;
    }
  };
  return {
    get,
    async entries() {
      const keys: string[] = [];
      for await (const key of await guarded("list keys", name, () => store.keys())) keys.push(key);
      const found = await Promise.all(
        keys.map((key) =>
          get(key).catch((error: unknown) => {
            if (error instanceof UndecodableMessageError) return undefined;
            throw error;
          }),
        ),
      );
      return found.filter((entry) => entry !== undefined);
    },
    async revisionOf(key) {
      const entry = await guarded("read a key", key, () => store.get(key));
      return entry === null || entry.operation !== "PUT" ? 0 : entry.revision;
    },
    put: (key, value) => guarded("write a key", key, () => store.put(key, toBinary(schema, value))),
    async compareAndSet(key, value, revision) {
      try {
        // Revision 0 also covers a key that was deleted, which `create` handles and `update` does not.
        const bytes = toBinary(schema, value);
        return await (revision === 0 ? store.create(key, bytes) : store.update(key, bytes, revision));
      } catch (error) {
        const translated = translateBusError(error, "write a key", key);
        throw translated instanceof RevisionConflictError
          ? new RevisionConflictError(key, { cause: error })
          : translated;
      }
    },
    delete: (key) => guarded("delete a key", key, () => store.delete(key)),
    async *watch(signal, onError) {
      while (!signal.aborted) {
        let iterator: QueuedIterator<KvWatchEntry> | undefined;
        const stop = () => iterator?.stop();
        try {
          iterator = await store.watch();
          signal.addEventListener("abort", stop, { once: true });
          if (signal.aborted) return;
          for await (const entry of iterator) {
            const change = await readable(entry, onError);
            if (change !== undefined) yield change;
          }
        } catch (error) {
          if (signal.aborted) return;
          onError?.(error);
        } finally {
          signal.removeEventListener("abort", stop);
          iterator?.stop();
        }
        if (!signal.aborted) await delay(RECOVERY_DELAY_MS);
      }
    },
  };
}

async function guarded<T>(action: string, subject: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translateBusError(error, action, subject);
  }
}
