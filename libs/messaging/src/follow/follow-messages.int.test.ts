import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { connectBus } from "../bus.ts";
import { publishBytes } from "../exchange/publish.ts";
import { StreamsRole } from "../rights/streams-role.ts";
import { DurableName, durableInfo, makeDurables } from "../streams/durables.ts";
import { StreamName } from "../streams/streams.ts";
import { subjects } from "../subjects.ts";
import { startBus, type TestBus } from "../testing.ts";
import { consumeBytes } from "../work/consume-work.ts";
import { followMessages, presentMessages } from "./follow-messages.ts";

/** Without a wake-up the reader looks again only after seconds, so a faster reaction shows that it was woken. */
const WOKEN_MS = 1_000;

describe("reading without a consumer", { timeout: 60_000 }, () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  const publish = async (run: string, text: string) =>
    (await publishBytes(bus, subjects.event(run, "step"), text, undefined)).sequence;
  const numConsumers = async () => (await bus.manager.streams.info(StreamName.events)).state.consumer_count;

  test("yields present and new messages of its filter once and in order, and creates no consumer", async () => {
    for (const text of ["1", "2", "3"]) await publish("mine", text);
    await publish("other", "x");
    const stop = new AbortController();
    const filter = subjects.event("mine", "*");
    const texts: string[] = [];
    const reading = (async () => {
      for await (const message of followMessages(bus, {
        stream: StreamName.events,
        filter,
        signal: stop.signal,
      })) {
        texts.push(message.string());
      }
    })();
    await eventually("the present messages", () => texts.length === 3);
    // Long enough that the reader has passed its short pauses.
    await new Promise((resolve) => setTimeout(resolve, 900));
    const sentAt = performance.now();
    await publish("other", "x");
    await Promise.all(["4", "5", "6"].map((text) => publish("mine", text)));
    await eventually("what came", () => texts.length === 6);
    assert.ok(performance.now() - sentAt < WOKEN_MS, "the reader was not woken");
    assert.deepEqual(texts, ["1", "2", "3", "4", "5", "6"]);
    assert.equal(await numConsumers(), 0);
    stop.abort();
    await reading;
    const present: string[] = [];
    for await (const message of presentMessages(bus, StreamName.events, filter))
      present.push(message.string());
    assert.deepEqual(present, texts);
  });

  test("begins at the given position, and at the beginning if the stream was started over", async () => {
    const from = await publish("begin", "first wanted");
    const filter = subjects.event("begin", "*");
    const first = async (fromSequence: number): Promise<string> => {
      const stop = new AbortController();
      const options = { stream: StreamName.events, filter, fromSequence, signal: stop.signal };
      for await (const message of followMessages(bus, options)) return message.string();
      return "";
    };
    assert.equal(await first(from), "first wanted");
    // The stream is far from this position, so it must have been started over.
    assert.equal(await first(from + 1_000_000), "first wanted");
  });

  test("consuming waits until another service creates the shared consumer, and continues after the consumer was lost", async () => {
    const taker = await connectBus({ url: bus.server.url, name: "taker", streams: StreamsRole.await });
    const taken: number[] = [];
    const consumer = consumeBytes(taker, {
      stream: StreamName.jobs,
      durable: DurableName.jobs,
      filter: subjects.rolloutJob("*"),
      concurrency: 1,
      handle: async ({ message }) => void taken.push(Number(new TextDecoder().decode(message))),
      onError: () => undefined,
    });
    const send = (text: string) => publishBytes(bus, subjects.rolloutJob("r"), text, undefined);
    try {
      await send("1");
      await new Promise((resolve) => setTimeout(resolve, 600));
      assert.equal(
        await durableInfo(bus, StreamName.jobs, DurableName.jobs),
        undefined,
        "it created a consumer",
      );
      assert.equal(taken.length, 0);
      await makeDurables(bus);
      await eventually("the first", () => taken.length === 1);
      await bus.manager.consumers.delete(StreamName.jobs, DurableName.jobs);
      await makeDurables(bus);
      await send("2");
      await eventually("the second", () => taken.includes(2), { deadlineMs: 30_000 });
    } finally {
      await consumer.drain();
      await taker.close();
    }
  });
});
