import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNats } from "@hone/testing";
import { DiscardPolicy, RetentionPolicy } from "@nats-io/jetstream";
import {
  connectBus,
  EPISODES_MAX_BYTES,
  ensureTopology,
  type OldSize,
  publishBytes,
  StreamFullError,
  StreamName,
  streamRoom,
  subjects,
} from "../index.ts";

const SOON = { deadlineMs: 100 };
const KIB = new Uint8Array(1_024);
const MIB = 1024 ** 2;
const LARGE = new Uint8Array(1_000_000);
/** Number of large messages in RUNS that exceeds its size. */
const MORE_THAN_FITS = 270;

describe("streams", { timeout: 60_000 }, () => {
  test("have a size: a full stream of work refuses messages, one of reports drops its oldest", async () => {
    await using nats = await startNats();
    const bus = await connectBus({ url: nats.url, name: "limits" });
    try {
      await ensureTopology(bus);
      for (const [stream, subject, discard] of [
        [StreamName.runs, subjects.runRequest(), DiscardPolicy.New],
        [StreamName.jobs, subjects.rolloutJob("a-run"), DiscardPolicy.New],
        [StreamName.episodes, subjects.rolloutFinished("a-run"), DiscardPolicy.New],
        [StreamName.events, subjects.event("a-run", "step"), DiscardPolicy.Old],
        [StreamName.dead, subjects.dead("JOBS"), DiscardPolicy.Old],
      ] as const) {
        const { config } = await bus.manager.streams.info(stream);
        assert.ok(config.max_bytes > 0, `${stream} has a size`);
        assert.equal(config.discard, discard, stream);
        await bus.manager.streams.update(stream, { max_bytes: 3 * KIB.length });
        const publish = () => publishBytes(bus, subject, KIB, undefined, SOON);
        for (let number = 0; number < 2; number++) await publish();
        if (discard === DiscardPolicy.New) await assert.rejects(publish(), StreamFullError, stream);
        else await publish();
        assert.equal((await bus.manager.streams.info(stream)).state.messages, 2, stream);
      }
    } finally {
      await bus.close();
    }
  });

  test("EPISODES gets the configured size, and never a smaller one than its contents need", async () => {
    await using nats = await startNats();
    const bus = await connectBus({ url: nats.url, name: "limits" });
    try {
      const info = () => bus.manager.streams.info(StreamName.episodes);
      const sizeOf = async () => (await info()).config.max_bytes;
      const told: OldSize[] = [];
      const make = (episodesMaxBytes?: number) =>
        ensureTopology(bus, { episodesMaxBytes, onOldSize: (size) => told.push(size) });
      await make();
      assert.equal(await sizeOf(), EPISODES_MAX_BYTES);
      await make(10 * MIB);
      assert.equal(await sizeOf(), 10 * MIB);
      // Without a configured size it stays as it is.
      await make();
      assert.equal(await sizeOf(), 10 * MIB);
      const publish = () => publishBytes(bus, subjects.rolloutFinished("a-run"), LARGE, undefined, SOON);
      for (let number = 0; number < 9; number++) await publish();
      const held = (await info()).state;
      assert.deepEqual(told, []);
      for (const bytes of [5 * MIB, 9 * MIB]) await make(bytes);
      assert.deepEqual((await info()).state.messages, held.messages);
      assert.deepEqual(told, new Array(2).fill({ maxBytes: 10 * MIB, bytes: held.bytes }));
      await bus.manager.streams.purge(StreamName.episodes, { keep: 2 });
      await make(5 * MIB);
      assert.equal(await sizeOf(), 5 * MIB);
      assert.equal((await info()).state.messages, 2);
      for (let number = 0; number < 3; number++) await publish();
      await assert.rejects(publish(), StreamFullError);
      const { bytes, first_seq: firstSequence } = (await info()).state;
      const runs = ["a-run"];
      const full = { bytes, maxBytes: 5 * MIB, isFull: true, firstSequence, runs };
      assert.deepEqual(await streamRoom(bus, StreamName.episodes), full);
      await make(12 * MIB);
      const roomy = { ...full, maxBytes: 12 * MIB, isFull: false };
      assert.deepEqual(await streamRoom(bus, StreamName.episodes), roomy);
      await publish();
      assert.equal((await info()).state.messages, 6);
      assert.equal(told.length, 2);
    } finally {
      await bus.close();
    }
  });

  test("EPISODES keeps its size if the server has no space for a larger one, and this is reported", async () => {
    await using nats = await startNats();
    const bus = await connectBus({ url: nats.url, name: "limits" });
    try {
      const told: OldSize[] = [];
      const onOldSize = (size: OldSize) => told.push(size);
      await ensureTopology(bus, { episodesMaxBytes: 10 * MIB, onOldSize });
      await ensureTopology(bus, { episodesMaxBytes: 2 ** 50, onOldSize });
      const { config } = await bus.manager.streams.info(StreamName.episodes);
      assert.equal(config.max_bytes, 10 * MIB);
      assert.deepEqual(told, [{ maxBytes: 10 * MIB, bytes: 0 }]);
    } finally {
      await bus.close();
    }
  });

  test("of an older state folder get their sizes, and keep their messages", async () => {
    await using nats = await startNats();
    const bus = await connectBus({ url: nats.url, name: "limits" });
    try {
      await bus.manager.streams.add({
        name: StreamName.runs,
        subjects: [subjects.runRequest()],
        retention: RetentionPolicy.Workqueue,
        discard: DiscardPolicy.New,
        max_msgs: 10_000,
      });
      const publish = () => publishBytes(bus, subjects.runRequest(), LARGE, undefined);
      for (let number = 0; number < MORE_THAN_FITS; number++) await publish();
      await ensureTopology(bus);
      const info = () => bus.manager.streams.info(StreamName.runs);
      assert.equal((await info()).state.messages, MORE_THAN_FITS);
      await bus.manager.streams.purge(StreamName.runs, { keep: 1 });
      await ensureTopology(bus);
      const { config, state } = await info();
      assert.ok(config.max_bytes > 0);
      assert.equal(state.messages, 1);
    } finally {
      await bus.close();
    }
  });
});
