import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { type RolloutJob, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { badBodies, withInputs } from "@hone/testing/fuzz";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import fc from "fast-check";
import {
  BucketName,
  type Bus,
  consumeWork,
  DeadHeader,
  openBucket,
  publishBytes,
  publishStored,
  readOrdered,
  request,
  respond,
  StreamName,
  subjects,
  UndecodableMessageError,
} from "../index.ts";
import { OLD_PAYLOAD_STORE } from "../payloads/payload-stores.ts";
import { startBus, type TestBus } from "../testing.ts";

const ignore = () => undefined;
const job = (runId: string, change: Partial<Omit<RolloutJob, "$typeName" | "$unknown">> = {}) =>
  create(RolloutJobSchema, { runId, slot: { split: "train", step: 1, task: 2, index: 3 }, ...change });
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

function headersOf(entries: Readonly<Record<string, string>>): MsgHdrs {
  const made = headers();
  for (const [key, value] of Object.entries(entries)) made.set(key, value);
  return made;
}

describe("bad input on the bus", { timeout: 120_000 }, () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  const deadCount = async () => (await bus.manager.streams.info(StreamName.dead)).state.messages;
  const lastReason = async () => {
    const message = await bus.manager.streams.getMessage(StreamName.dead, { last_by_subj: "hone.v1.dead.*" });
    return message!.header.get(DeadHeader.reason);
  };

  test("each message is handled or goes to DEAD, whatever it contains, and work continues", async () => {
    await withInputs(badBodies(RolloutJobSchema, job("fuzz-1")), 400, async (bodies) => {
      const before = await deadCount();
      let handled = 0;
      const consumer = consumeWork(bus, RolloutJobSchema, {
        stream: StreamName.jobs,
        durable: "fuzz",
        filter: subjects.rolloutJob("*"),
        concurrency: 32,
        handle: async () => void handled++,
        onError: ignore,
      });
      try {
        for (const body of bodies) await publishBytes(bus, subjects.rolloutJob("fuzz-1"), body, undefined);
        await eventually("the queue to be empty", async () => {
          const { state } = await bus.manager.streams.info(StreamName.jobs);
          return state.messages === 0;
        });
      } finally {
        await consumer.drain();
      }
      assert.equal(handled + (await deadCount()) - before, bodies.length);
      assert.ok(handled > 0 && handled < bodies.length);
    });
  });

  // Objects in the bucket of older releases, whose layout describes them; payload-stores.int.test.ts tests the other buckets.
  describe("pointers to objects", () => {
    before(() => bus.objects.create(OLD_PAYLOAD_STORE));

    const body = toBinary(
      RolloutJobSchema,
      job("pointed", { agentConfigJson: randomBytes(300_000).toString("hex") }),
    );

    /** Stores an object and damages it, then reads the message that points to it. @returns why it could not be read. */
    async function readPointed(
      name: string,
      damage: (store: Awaited<ReturnType<Bus["objects"]["open"]>>) => Promise<unknown>,
      digest = sha256(body),
    ): Promise<string> {
      const store = await bus.objects.open(OLD_PAYLOAD_STORE);
      await store.putBlob({ name }, body);
      await damage(store);
      const before = await deadCount();
      const run = `pointed-${name}`;
      const pointer = headersOf({ "hone-object": name, "hone-digest": digest });
      await publishBytes(bus, subjects.rolloutScored(run), new Uint8Array(0), pointer);
      await publishStored(bus, subjects.rolloutScored(run), RolloutJobSchema, job(run));
      const stop = new AbortController();
      const options = {
        stream: StreamName.episodes,
        filter: subjects.rolloutScored(run),
        signal: stop.signal,
      };
      for await (const { message } of readOrdered(bus, RolloutJobSchema, options)) {
        assert.equal(message.runId, run, "the message after the broken one is read");
        break;
      }
      stop.abort();
      assert.equal(await deadCount(), before + 1);
      return lastReason();
    }
    const objectStream = `OBJ_${OLD_PAYLOAD_STORE}`;
    /** Changes the description of an object. */
    const redescribe = async (name: string, change: Record<string, unknown>) => {
      // Base64 in its URL-safe form, with padding.
      const token = Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
      const subject = `$O.${OLD_PAYLOAD_STORE}.M.${token}`;
      const found = await bus.manager.streams.getMessage(objectStream, { last_by_subj: subject });
      const described = { ...(found!.json() as Record<string, unknown>), ...change };
      const rollup = headersOf({ "Nats-Rollup": "sub" });
      await bus.stream.publish(found!.subject, JSON.stringify(described), { headers: rollup });
    };

    test("a message is undecodable if its object is gone, has another digest or is not an object", async () => {
      assert.match(await readPointed("gone", (store) => store.delete("gone")), /is gone/);
      assert.match(await readPointed("other", async () => undefined, "0".repeat(64)), /has another digest/);
      assert.match(
        await readPointed("rubbish", () => redescribe("rubbish", { nuid: "no token" })),
        /has an invalid description/,
      );
      assert.match(
        await readPointed("all", () => redescribe("all", { nuid: ">" })),
        /has an invalid description/,
      );
      assert.match(await readPointed("astray", () => redescribe("astray", { nuid: "x" })), /is gone/);
    });

    test("a message is undecodable if its object has another size than it claims", async () => {
      assert.match(
        await readPointed("more", () => redescribe("more", { size: body.length + 1 })),
        /lacks some/,
      );
      assert.match(await readPointed("huge", () => redescribe("huge", { size: 1e15 })), /above 268435456/);
      assert.match(
        await readPointed("empty", () => redescribe("empty", { size: 0 })),
        /claims to have 0 bytes/,
      );
    });

    test("a reader does not wait for ever for a missing part of an object", async () => {
      const reason = await readPointed("holed", async () => {
        const { state } = await bus.manager.streams.info(objectStream, { subjects_filter: ">" });
        const chunks = Object.keys(state.subjects ?? {}).filter((subject) => subject.includes(".C."));
        for (const filter of chunks) {
          const last = await bus.manager.streams.getMessage(objectStream, { last_by_subj: filter });
          await bus.manager.streams.deleteMessage(objectStream, last!.seq);
        }
        // After the purge no further part can arrive, so a reader without a limit would wait for ever.
        for (const filter of chunks) await bus.manager.streams.purge(objectStream, { filter });
      });
      assert.match(reason, /lacks some of its parts|cannot be read|is gone/);
    });
  });

  test("a dead letter is cut if the message with its reason would be too large, and its headers have no line breaks", async () => {
    const before = await deadCount();
    const huge = headersOf({ traceparent: "x".repeat(100), "hone-note": "n".repeat(20_000) });
    const errors: unknown[] = [];
    const responder = respond(bus, "hone.v1.dataset.batch", RolloutJobSchema, RolloutJobSchema, {
      handle: ignore,
      onError: (error) => errors.push(error),
    });
    await bus.connection.flush();
    const data = new Uint8Array(bus.maxPayloadBytes() - 21_000).fill(255);
    bus.connection.publish("hone.v1.dataset.batch", data, { headers: huge });
    await eventually("the dead letter", async () => (await deadCount()) === before + 1);
    await responder.drain();
    assert.ok(errors[0] instanceof UndecodableMessageError);
    const dead = await bus.manager.streams.getMessage(StreamName.dead, {
      last_by_subj: "hone.v1.dead.REQUESTS",
    });
    assert.equal(dead!.header.get("hone-note"), "");
    assert.equal(dead!.header.get("traceparent"), "x".repeat(100));
    assert.equal(dead!.header.get(DeadHeader.clippedFrom), "");
  });

  test("a message of the largest size is cut when it goes to DEAD", async () => {
    const before = await deadCount();
    const responder = respond(bus, "hone.v1.dataset.batch", RolloutJobSchema, RolloutJobSchema, {
      handle: ignore,
      onError: ignore,
    });
    await bus.connection.flush();
    const size = bus.maxPayloadBytes();
    bus.connection.publish("hone.v1.dataset.batch", new Uint8Array(size).fill(255));
    await eventually("the dead letter", async () => (await deadCount()) === before + 1);
    await responder.drain();
    const dead = await bus.manager.streams.getMessage(StreamName.dead, {
      last_by_subj: "hone.v1.dead.REQUESTS",
    });
    assert.equal(dead!.header.get(DeadHeader.clippedFrom), String(size));
    assert.ok(dead!.data.length > size / 2 && dead!.data.length < size);
  });

  test("messages with any headers are answered: invalid traces, long values, many keys", async () => {
    const text = fc.string({ unit: "grapheme", maxLength: 60 }).filter((value) => !/[\r\n]/.test(value));
    const traceparent = fc.oneof(
      text,
      fc.constantFrom(
        "00-00000000000000000000000000000000-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        `00-${"a".repeat(4_000)}`,
      ),
    );
    const some = fc.record({ traceparent, tracestate: text, "hone-object": fc.constant(""), baggage: text });
    const responder = respond(bus, "hone.v1.judge.score", RolloutJobSchema, RolloutJobSchema, {
      handle: ({ message, reply }) => reply(message),
      onError: ignore,
    });
    await bus.connection.flush();
    await withInputs(some, 200, async (inputs) => {
      const data = toBinary(RolloutJobSchema, job("headers"));
      const answers = await Promise.all(
        inputs.map((input) =>
          bus.connection.request("hone.v1.judge.score", data, { timeout: 5_000, headers: headersOf(input) }),
        ),
      );
      for (const answer of answers) assert.equal(Buffer.compare(answer.data, data), 0);
    });
    await responder.drain();
  });

  test("a value that cannot be decoded does not stop a watcher, and is reported once", async () => {
    const raw = await bus.keyValue.open(BucketName.runState);
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    const state: RunState = create(RunStateSchema, { runId: "good-1", version: 3 });
    await raw.put("poison-1", new Uint8Array([255, 255, 255]));
    await bucket.put("good-1", state);
    const before = await deadCount();
    const stop = new AbortController();
    const errors: unknown[] = [];
    const seen: string[] = [];
    for await (const { key, value } of bucket.watch(stop.signal, (error) => errors.push(error))) {
      seen.push(key);
      if (key === "good-1" && value?.version === 3) {
        await raw.put("poison-1", "still rubbish, of another kind \xff\xfe");
        await bucket.put("good-1", { ...state, version: 4 });
      }
      if (value?.version === 4) break;
    }
    stop.abort();
    assert.deepEqual(seen, ["good-1", "good-1"]);
    assert.equal(errors.length, 2);
    assert.ok(errors.every((error) => error instanceof UndecodableMessageError));
    assert.equal(await deadCount(), before + 2);
    assert.deepEqual(
      (await bucket.entries()).map(({ key }) => key),
      ["good-1"],
    );
    await assert.rejects(bucket.get("poison-1"), UndecodableMessageError);
    await bucket.compareAndSet("poison-1", state, await bucket.revisionOf("poison-1"));
    assert.equal((await bucket.get("poison-1"))?.value.version, 3);
    assert.equal(await bucket.revisionOf("absent-1"), 0);
  });

  test("a request fails at once when its answer cannot be decoded", async () => {
    const answering = bus.connection.subscribe("hone.v1.judge.score", {
      callback: (_, message) => void message.respond(new Uint8Array([255, 255])),
    });
    await bus.connection.flush();
    await assert.rejects(
      request(bus, subjects.judgeScore(), RolloutJobSchema, job("x"), RolloutJobSchema, { timeoutMs: 2_000 }),
      UndecodableMessageError,
    );
    answering.unsubscribe();
  });
});
