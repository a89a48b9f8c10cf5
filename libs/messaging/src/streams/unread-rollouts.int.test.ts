import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import { eventually } from "@hone/testing";
import {
  consumeWork,
  DurableName,
  dropUnread,
  publishStored,
  purgeEpisodes,
  reportUnread,
  StreamName,
  subjects,
  unreadRollouts,
} from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";
import { UNREAD_SHARE } from "./unread-rollouts.ts";

/* The tracer's backlog is limited, while messages that the judge or the trainer need are kept. */

const MAX_BYTES = 64 * 1024;
const BODY = "x".repeat(1_000);
const EPISODES = 20;

describe("dropping episodes that the tracer has not read", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
    const { config } = await bus.manager.streams.info(StreamName.episodes);
    await bus.manager.streams.update(StreamName.episodes, { ...config, max_bytes: MAX_BYTES });
  });
  after(() => bus?.close());

  const publish = (subject: string) =>
    publishStored(bus, subject, RolloutJobSchema, create(RolloutJobSchema, { runId: BODY }));

  /** Publishes finished and scored episodes alternately. @returns the position of the last. */
  const publishEpisodes = async (run: string, count = EPISODES): Promise<number> => {
    let last = 0;
    for (let index = 0; index < count; index++) {
      await publish(subjects.rolloutFinished(run));
      last = (await publish(subjects.rolloutScored(run))).sequence;
    }
    return last;
  };

  /** A shared consumer that reads messages, or fails while `isBroken` is set. */
  const reader = (durable: string, filter: string) => {
    const seen = new Set<number>();
    const state = { isBroken: true };
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.episodes,
      durable,
      filter,
      concurrency: 4,
      retryDelayMs: 50,
      handle: async ({ sequence }) => {
        if (state.isBroken) throw new Error("away");
        seen.add(sequence);
      },
      onError: () => undefined,
    });
    return { seen, state, consumer };
  };

  const bytes = async () => (await bus.manager.streams.info(StreamName.episodes)).state.bytes;
  const begun = (durable: string) =>
    eventually(`${durable} to begin`, async () => {
      const { delivered } = await bus.manager.consumers.info(StreamName.episodes, durable);
      return delivered.consumer_seq > 0;
    });

  test("dropUnread() keeps what the judge has not read, and limits what the tracer has not read", async () => {
    const judge = reader(DurableName.finishedEpisodes, subjects.rolloutFinished("*"));
    const tracer = reader(DurableName.scoredEpisodes, subjects.rolloutScored("*"));
    const last = await publishEpisodes("lake-1");
    await begun(DurableName.finishedEpisodes);
    await begun(DurableName.scoredEpisodes);
    assert.ok((await bytes()) > MAX_BYTES * UNREAD_SHARE, "the stream must be more than half full");

    assert.equal(await purgeEpisodes(bus, "lake-1", last + 1), 0);
    assert.equal(await dropUnread(bus, "lake-1", last + 1), 0, "the judge needs them");

    judge.state.isBroken = false;
    await eventually("the judge to be through", () => judge.seen.size === EPISODES);
    await judge.consumer.drain();
    const dropped = await dropUnread(bus, "lake-1", last + 1);
    assert.ok(dropped > 0 && dropped < EPISODES, `${dropped} were dropped`);
    const left = await bytes();
    assert.ok(left <= MAX_BYTES * UNREAD_SHARE && left > 0, `${left} bytes are left`);
    assert.equal(await dropUnread(bus, "lake-1", last + 1), 0, "there is space again");

    tracer.state.isBroken = false;
    await eventually("the tracer to have the rest", () => tracer.seen.size === EPISODES - dropped);
    await tracer.consumer.drain();
    assert.equal(Math.max(...tracer.seen), last, "the newest stay");
    // The server takes acknowledgements up at its own pace.
    await eventually("nothing to be left", async () => {
      await purgeEpisodes(bus, "lake-1", last + 1);
      return (await bytes()) === 0;
    });
  });

  test("dropUnread() keeps what the trainer still needs, however full the stream is", async () => {
    const tracer = reader(DurableName.scoredEpisodes, subjects.rolloutScored("*"));
    const needed = await publishEpisodes("lake-2", 1);
    await publishEpisodes("lake-2", EPISODES);
    await bus.manager.consumers.delete(StreamName.episodes, DurableName.finishedEpisodes);
    await begun(DurableName.scoredEpisodes);
    assert.equal(await dropUnread(bus, "lake-2", needed + 1), 1);
    const { state } = await bus.manager.streams.info(StreamName.episodes);
    assert.equal(state.messages, EPISODES * 2);
    tracer.state.isBroken = false;
    await eventually("the tracer to have the rest", () => tracer.seen.size === EPISODES);
    await tracer.consumer.drain();
  });

  test("reportUnread() adds to the number that was reported before", async () => {
    await reportUnread(bus, "lake-1", 5);
    await reportUnread(bus, "lake-1", 7);
    await reportUnread(bus, "lake-2", 1);
    assert.deepEqual(
      await unreadRollouts(bus),
      new Map([
        ["lake-1", 12],
        ["lake-2", 1],
      ]),
    );
  });
});
