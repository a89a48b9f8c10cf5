import assert from "node:assert/strict";
import { test } from "node:test";
import { RetryableError } from "@hone/core";
import { onSmallDisk, type SmallDisk, startNats } from "@hone/testing";
import { connectBus, ensureTopology, publishBytes, StreamName, subjects } from "../index.ts";

/* The disk of nats-server is full for a while. Messages that it stored are kept, and the others are stored afterwards. */

/** Far less than the sizes of the streams. */
const DISK_BYTES = 24 * 1024 ** 2;
const MESSAGE_BYTES = 100_000;
const STREAM = "hone-disk-test";

test(
  "a bus whose disk was full goes on once there is space, and holds every stored message once",
  {
    timeout: 120_000,
  },
  (context) => onSmallDisk(context, DISK_BYTES, fillAndFree),
);

async function fillAndFree(disk: SmallDisk): Promise<void> {
  const folder = `${disk.path}/nats`;
  let nats = await startNats({ folder });
  const { url, port } = nats;
  // The supervisor does the same.
  let isOver = false;
  const restarting = nats.exited.then(async () => {
    if (!isOver) nats = await startNats({ folder, port });
  });
  const bus = await connectBus({ url, name: "test" });
  try {
    await ensureTopology(bus);
    const publish = (number: number, deadlineMs: number) =>
      publishBytes(bus, subjects.rolloutFinished(STREAM), new Uint8Array(MESSAGE_BYTES), undefined, {
        messageId: `message-${number}`,
        deadlineMs,
      });
    for (let number = 0; number < 3; number++) await publish(number, 5_000);
    await disk.fill();
    await assert.rejects(publish(3, 1_000), RetryableError);
    const waiting = [3, 4, 5].map((number) => publish(number, 60_000));
    await disk.free();
    await Promise.all(waiting);
    await restarting;
    for (let number = 0; number < 6; number++) await publish(number, 5_000);
    assert.equal((await bus.manager.streams.info(StreamName.episodes)).state.messages, 6);
  } finally {
    isOver = true;
    await bus.close();
    await nats.stop();
  }
}
