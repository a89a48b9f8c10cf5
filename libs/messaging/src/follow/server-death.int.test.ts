import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import { eventually, startNats, temporaryFolder } from "@hone/testing";
import {
  type Bus,
  connectBus,
  consumeWork,
  ensureTopology,
  publishStored,
  purgeEpisodes,
  readOrdered,
  StreamName,
  subjects,
} from "../index.ts";

/* A server that is killed and started again on the same files, and the readers of its streams. */

const BACK_DEADLINE_MS = 30_000;
const messageOf = (cursor: number) => create(RolloutJobSchema, { runId: "run", cursor: BigInt(cursor) });

describe("a server that is killed and started again", () => {
  test("loses no acknowledged message, and readers, watchers and consumers continue", async () => {
    await using server = await mortalServer();
    const { bus } = server;
    const { read, worked } = server.readAll({
      read: subjects.rolloutScored("survivor"),
      workStream: StreamName.jobs,
      work: subjects.rolloutJob("survivor"),
    });
    const send = (cursor: number) =>
      Promise.all([
        publishStored(bus, subjects.rolloutScored("survivor"), RolloutJobSchema, messageOf(cursor), {
          messageId: `e${cursor}`,
        }),
        publishStored(bus, subjects.rolloutJob("survivor"), RolloutJobSchema, messageOf(cursor), {
          messageId: `j${cursor}`,
        }),
      ]);
    await send(1);
    await eventually("the first message", () => read.length === 1 && worked.length === 1);
    await server.kill();
    const sending = send(2);
    await server.comeBack();
    await sending;
    await eventually("the second message", () => read.length === 2 && new Set(worked).size === 2, {
      deadlineMs: BACK_DEADLINE_MS,
    });
    assert.deepEqual(read, [1n, 2n]);
    await server.stopReading();
  });

  test("may number an emptied stream from 1 again, and readers and consumers still get its new messages", async () => {
    await using server = await mortalServer();
    const { bus } = server;
    const { read, worked } = server.readAll({
      read: subjects.rolloutFinished("emptied"),
      workStream: StreamName.episodes,
      work: subjects.rolloutFinished("*"),
    });
    const send = (cursor: number) =>
      publishStored(bus, subjects.rolloutFinished("emptied"), RolloutJobSchema, messageOf(cursor));
    for (let cursor = 0; cursor < 20; cursor++) await send(cursor);
    await eventually("20 messages", () => read.length === 20 && new Set(worked).size === 20);
    await eventually("an empty stream", async () => (await purgeEpisodes(bus, "emptied", 1_000)) > 0);
    await server.kill();
    await server.comeBack();
    for (let cursor = 20; cursor < 25; cursor++) await send(cursor);
    if (new Set(worked).size < 25) assert.equal(await purgeEpisodes(bus, "emptied", 1_000), 0);
    await eventually("5 more messages", () => read.length === 25 && new Set(worked).size === 25, {
      deadlineMs: BACK_DEADLINE_MS,
    });
    await server.stopReading();
  });
});

interface Reading {
  /** The subject in EPISODES that a reader follows in order. */
  readonly read: string;
  /** The stream and subject that a consumer takes work from. */
  readonly workStream: StreamName;
  readonly work: string;
}

interface MortalServer extends AsyncDisposable {
  readonly bus: Bus;
  /** Starts a reader and a consumer. @returns the cursors that they receive, in order. */
  readAll(reading: Reading): { readonly read: bigint[]; readonly worked: bigint[] };
  /** Ends the reader and the consumer. */
  stopReading(): Promise<void>;
  kill(): Promise<void>;
  /** Starts the server again on the same port and the same files. */
  comeBack(): Promise<void>;
}

async function mortalServer(): Promise<MortalServer> {
  const folder = await temporaryFolder("bus");
  let nats = await startNats({ folder: folder.path });
  const port = Number(new URL(nats.url).port);
  const bus = await connectBus({ url: nats.url, name: "test" });
  await ensureTopology(bus);
  const stopping = new AbortController();
  let stopReading = async () => stopping.abort();
  return {
    bus,
    readAll({ read: filter, workStream, work }) {
      const read: bigint[] = [];
      const worked: bigint[] = [];
      const reading = (async () => {
        const options = { stream: StreamName.episodes, filter, signal: stopping.signal };
        for await (const { message } of readOrdered(bus, RolloutJobSchema, options))
          read.push(message.cursor);
      })();
      const consumer = consumeWork(bus, RolloutJobSchema, {
        stream: workStream,
        durable: "worker",
        filter: work,
        concurrency: 8,
        handle: async ({ message }) => void worked.push(message.cursor),
        onError: () => undefined,
      });
      stopReading = async () => {
        stopping.abort();
        await consumer.drain();
        await reading;
      };
      return { read, worked };
    },
    stopReading: () => stopReading(),
    async kill() {
      process.kill(nats.pid, "SIGKILL");
      await nats.exited;
    },
    async comeBack() {
      nats = await startNats({ folder: folder.path, port });
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await bus.close();
      await nats.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}
