import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineError } from "@hone/core";
import { startNats } from "@hone/testing";
import { connectBus, ensureTopology, StreamName, StreamsRole } from "../index.ts";

test("ensureTopology() in the role await returns once another service has created everything, and creates nothing itself", {
  timeout: 60_000,
}, async () => {
  await using nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test", inboxPrefix: "_INBOX_test" });
  try {
    const role = StreamsRole.await;
    await assert.rejects(ensureTopology(bus, { role, awaitDeadlineMs: 500 }), DeadlineError);
    const names: string[] = [];
    for await (const name of bus.manager.streams.names()) names.push(name);
    assert.deepEqual(names, []);

    const waiting = ensureTopology(bus, { role });
    await ensureTopology(bus);
    await waiting;
    assert.match(bus.replies.open(() => undefined).subject, /^_INBOX_test\./);
  } finally {
    await bus.close();
  }
});

test("ensureTopology() requests the configured number of copies", { timeout: 60_000 }, async () => {
  await using nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test" });
  try {
    // A single server cannot hold three copies; its refusal proves that they were requested.
    const stop = AbortSignal.timeout(3_000);
    await assert.rejects(ensureTopology(bus, { replicas: 3, signal: stop }));
    await ensureTopology(bus, { replicas: 1 });
  } finally {
    await bus.close();
  }
});

test("a stream recognises duplicates for longer than any restart takes, also one that an older release created", {
  timeout: 60_000,
}, async () => {
  await using nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test" });
  try {
    const streams = [StreamName.runs, StreamName.jobs, StreamName.episodes, StreamName.events];
    const windows = async () =>
      Promise.all(
        streams.map(async (name) => (await bus.manager.streams.info(name)).config.duplicate_window),
      );
    const tenMinutes = 600e9;
    await ensureTopology(bus);
    assert.deepEqual(await windows(), Array(streams.length).fill(tenMinutes));
    await bus.manager.streams.update(StreamName.events, { duplicate_window: 120e9 });
    await ensureTopology(bus);
    assert.deepEqual(await windows(), Array(streams.length).fill(tenMinutes));
  } finally {
    await bus.close();
  }
});
