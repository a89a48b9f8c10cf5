import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { eventually } from "@hone/testing";
import { DiscardPolicy } from "@nats-io/jetstream";
import {
  BusUnavailableError,
  connectBus,
  publishBytes,
  request,
  requestStream,
  respond,
  StreamFullError,
} from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";

const LONG_MS = 60_000;
const question = create(BatchRequestSchema, { sourceJson: "?" });

describe("an exchange", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  test("ends at once when its connection is closed", async () => {
    const asker = await connectBus({ url: bus.server.url, name: "asker" });
    let asked = 0;
    const responder = respond(bus, "silent", BatchRequestSchema, BatchReplySchema, {
      handle: () => void asked++,
      onError: (error) => assert.fail(String(error)),
    });
    await bus.connection.flush();
    const one = request(asker, "silent", BatchRequestSchema, question, BatchReplySchema, {
      timeoutMs: LONG_MS,
    });
    const stream = requestStream(asker, "silent", BatchRequestSchema, question, BatchReplySchema, {
      idleTimeoutMs: LONG_MS,
      deadlineMs: LONG_MS,
      isLast: () => true,
    });
    const ended = Promise.allSettled([one, stream]);
    await eventually("both questions", () => asked === 2);
    await asker.connection.close();
    for (const result of await ended) {
      assert.ok(result.status === "rejected" && result.reason instanceof BusUnavailableError);
    }
    await responder.drain();
  });

  test("is refused if its answer would be published on a subject that is not for answers", async () => {
    const judge = await connectBus({ url: bus.server.url, name: "judge" });
    const refused: string[] = [];
    let numAnswered = 0;
    const responder = respond(judge, "scores", BatchRequestSchema, BatchReplySchema, {
      handle: async ({ reply }) => {
        numAnswered++;
        await reply(create(BatchReplySchema));
      },
      onError: (error) => refused.push((error as { code: string }).code),
    });
    const heard: string[] = [];
    const inboxes = ["_INBOX.a", "_INBOX_agent-rollout.answer.a.b"];
    const others = [
      "hone.v1.rollout.scored.r",
      "$JS.API.STREAM.DELETE.RUNS",
      "_INBOXES.a",
      "_INBOX",
      "x._INBOX.a",
    ];
    for (const subject of [...inboxes, ...others]) {
      bus.connection.subscribe(subject, { callback: () => void heard.push(subject) });
    }
    await Promise.all([judge.connection.flush(), bus.connection.flush()]);
    for (const reply of [...others, ...inboxes]) {
      bus.connection.publish("scores", toBinary(BatchRequestSchema, question), { reply });
    }
    await eventually("the answers", () => heard.length === inboxes.length);
    assert.deepEqual([heard.sort(), numAnswered], [inboxes.sort(), inboxes.length]);
    assert.deepEqual(
      refused,
      others.map(() => "REPLY_SUBJECT"),
    );
    await responder.drain();
    await judge.close();
  });

  test("is answered before its responder has drained, however often drain() is called", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let asked = 0;
    const responder = respond(bus, "draining", BatchRequestSchema, BatchReplySchema, {
      handle: async ({ reply }) => {
        asked++;
        await released;
        await reply(create(BatchReplySchema, { size: 7n }));
      },
      onError: (error) => assert.fail(String(error)),
    });
    await bus.connection.flush();
    const answer = request(bus, "draining", BatchRequestSchema, question, BatchReplySchema, {
      timeoutMs: LONG_MS,
    });
    await eventually("the question", () => asked === 1);
    const drained = Promise.all([responder.drain(), responder.drain()]);
    release();
    await drained;
    assert.equal((await answer).size, 7n);
  });

  test("rejects with the signal's reason", async () => {
    const stop = new AbortController();
    const responder = respond(bus, "stopped", BatchRequestSchema, BatchReplySchema, {
      handle: () => stop.abort(new Error("enough")),
      onError: (error) => assert.fail(String(error)),
    });
    await bus.connection.flush();
    const asked = request(bus, "stopped", BatchRequestSchema, question, BatchReplySchema, {
      timeoutMs: LONG_MS,
      signal: stop.signal,
    });
    await assert.rejects(asked, /enough/);
    await responder.drain();
  });

  test("rejects when the handler of its messages throws", async () => {
    const responder = respond(bus, "answered", BatchRequestSchema, BatchReplySchema, {
      handle: ({ reply }) => reply(create(BatchReplySchema)),
      onError: (error) => assert.fail(String(error)),
    });
    await bus.connection.flush();
    const asked = requestStream(bus, "answered", BatchRequestSchema, question, BatchReplySchema, {
      idleTimeoutMs: LONG_MS,
      deadlineMs: LONG_MS,
      isLast: () => {
        throw new Error("no such reply");
      },
    });
    await assert.rejects(asked, /no such reply/);
    await responder.drain();
  });

  test("reports a full stream, and a subject that no stream stores", async () => {
    await bus.manager.streams.add({
      name: "FULL",
      subjects: ["full"],
      max_msgs: 1,
      discard: DiscardPolicy.New,
    });
    assert.deepEqual(await publishBytes(bus, "full", "one", undefined), { sequence: 1, isDuplicate: false });
    const soon = { deadlineMs: 100 };
    await assert.rejects(publishBytes(bus, "full", "two", undefined, soon), StreamFullError);
    await assert.rejects(publishBytes(bus, "nowhere", "three", undefined, soon), BusUnavailableError);
  });
});
