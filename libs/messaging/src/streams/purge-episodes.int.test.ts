import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import { eventually } from "@hone/testing";
import { AckPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { DurableName, publishStored, purgeEpisodes, StreamName, subjects } from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";
import { makeDurable } from "./durables.ts";

/* Purging one run must not affect the messages of another that are being delivered. */

const ACK_WAIT_MS = 500;

describe("purging one run", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  const publish = (subject: string) =>
    publishStored(bus, subject, RolloutJobSchema, create(RolloutJobSchema, {}));

  /** A reader of all runs that has a message of another run which it did not acknowledge. */
  async function readerOfAllRuns(stream: StreamName, filter: string) {
    await bus.manager.consumers.add(stream, {
      durable_name: "reader",
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ACK_WAIT_MS),
      filter_subject: filter,
    });
    const consumer = await bus.stream.consumers.get(stream, "reader");
    const next = async () => (await consumer.next({ expires: 1_000 })) ?? assert.fail("nothing came");
    return {
      next,
      /** Acknowledges messages until all of these positions were delivered. */
      untilGot(...sequences: number[]): Promise<unknown> {
        const missing = new Set(sequences);
        return eventually(`${sequences.join(", ")}`, async () => {
          const message = await next();
          await message.ackAck();
          missing.delete(message.seq);
          return missing.size === 0;
        });
      },
    };
  }

  test("does not affect deliveries of another run's episodes", async () => {
    const gone = await publish(subjects.rolloutScored("gone"));
    const one = await publish(subjects.rolloutScored("other"));
    const reader = await readerOfAllRuns(StreamName.episodes, subjects.rolloutScored("*"));
    await (await reader.next()).ackAck();
    await reader.next();
    const two = await publish(subjects.rolloutScored("other"));
    assert.equal(await purgeEpisodes(bus, "gone", gone.sequence + 1), 1);
    await reader.untilGot(one.sequence, two.sequence);
  });

  test("does not wait for a consumer that acknowledges nothing, as it delivers second copies", async () => {
    const stream = StreamName.episodes;
    const durable = DurableName.shownEpisodes;
    const filter = subjects.rolloutFinished("*");
    await makeDurable(bus, {
      stream,
      durable,
      filter,
      isAcknowledged: false,
      ackWaitMs: 0,
      maxAckPending: 0,
    });
    const consumer = await bus.stream.consumers.get(stream, durable);
    await publish(subjects.rolloutFinished("shown"));
    assert.equal((await consumer.next({ expires: 1_000 }))?.subject, subjects.rolloutFinished("shown"));
    const { sequence } = await publish(subjects.rolloutFinished("shown"));
    assert.equal((await consumer.info()).num_pending, 1);
    assert.equal(await purgeEpisodes(bus, "shown", sequence + 1), 2);
  });

  test("does not affect deliveries of another run's jobs", async () => {
    const one = await publish(subjects.rolloutJob("other"));
    const reader = await readerOfAllRuns(StreamName.jobs, subjects.rolloutJob("*"));
    await reader.next();
    await publish(subjects.rolloutJob("gone"));
    const two = await publish(subjects.rolloutJob("other"));
    const { purged } = await bus.manager.streams.purge(StreamName.jobs, {
      filter: subjects.jobsToPurge("gone"),
    });
    assert.equal(purged, 1);
    await reader.untilGot(one.sequence, two.sequence);
  });
});
