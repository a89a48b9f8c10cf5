import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { DeadlineError, deadline, delay } from "@hone/core";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { headers } from "@nats-io/nats-core";
import {
  BucketName,
  BusUnavailableError,
  connectBus,
  consumeWork,
  DeadHeader,
  ensureTopology,
  openBucket,
  publishBytes,
  publishStored,
  purgeEpisodes,
  RevisionConflictError,
  readOrdered,
  request,
  requestStream,
  respond,
  StreamName,
  subjects,
  UndecodableMessageError,
} from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";

const job = (runId: string, cursor = 0) => create(RolloutJobSchema, { runId, cursor: BigInt(cursor) });
const fail = (error: unknown) => {
  throw error;
};
const ignore = () => undefined;

describe("the bus", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  test("connectBus() rejects with the signal's reason", async () => {
    const reason = new Error("told to stop");
    const options = { url: bus.server.url, name: "stopped", signal: AbortSignal.abort(reason) };
    await assert.rejects(connectBus(options), reason);
  });

  test("ensureTopology() changes nothing the second time", async () => {
    await ensureTopology(bus);
  });

  test("publishStored() stores a message with the same id once", async () => {
    const subject = subjects.rolloutFinished("dedupe");
    const first = await publishStored(bus, subject, RolloutJobSchema, job("dedupe"), { messageId: "one" });
    const second = await publishStored(bus, subject, RolloutJobSchema, job("dedupe"), { messageId: "one" });
    assert.deepEqual(second, { sequence: first.sequence, isDuplicate: true });
  });

  test("readOrdered() ends when its signal aborts while it opens a stream without messages", async () => {
    const filter = subjects.rolloutScored("nobody");
    for (const waitMs of [0, 1, 2, 4, 8]) {
      const ending = new AbortController();
      const options = { stream: StreamName.episodes, filter, signal: ending.signal };
      const first = readOrdered(bus, RolloutJobSchema, options).next();
      await delay(waitMs);
      ending.abort();
      const { done } = await deadline("the reader to end", 2_000, () => first);
      assert.equal(done, true);
    }
  });

  test("consumeWork() acknowledges messages that succeed, and gets those that fail again", async () => {
    const tries = new Map<bigint, number>();
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "work",
      filter: subjects.rolloutJob("work"),
      concurrency: 4,
      retryDelayMs: 1,
      handle: async ({ message, deliveries }) => {
        tries.set(message.cursor, deliveries);
        if (message.cursor === 3n && deliveries === 1) throw new Error("first try fails");
      },
      onError: ignore,
    });
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        publishStored(bus, subjects.rolloutJob("work"), RolloutJobSchema, job("work", i)),
      ),
    );
    await eventually("20 jobs and one repetition", () => tries.size === 20 && tries.get(3n) === 2);
    await consumer.drain();
    // The server handles acknowledgements asynchronously.
    await eventually("all to be acknowledged", async () => {
      const { num_ack_pending, num_pending } = await bus.manager.consumers.info(StreamName.jobs, "work");
      return num_ack_pending + num_pending === 0;
    });
  });

  test("consumeWork() gets no message twice even if beginning all of them takes longer than the acknowledgement time", async () => {
    const count = 800;
    const deliveries: number[] = [];
    const release = Promise.withResolvers<void>();
    await Promise.all(
      Array.from({ length: count }, (_, i) =>
        publishStored(bus, subjects.rolloutJob("burst"), RolloutJobSchema, job("burst", i)),
      ),
    );
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "burst",
      filter: subjects.rolloutJob("burst"),
      concurrency: 2 * count,
      ackWaitMs: 3_000,
      handle: async (item) => {
        deliveries.push(item.deliveries);
        // Work that keeps the processor busy, as an agent's first turn does: four seconds for all messages.
        for (const until = performance.now() + 5; performance.now() < until; );
        await release.promise;
      },
      onError: ignore,
    });
    await eventually("every message to be in work", () => deliveries.length >= count, { deadlineMs: 30_000 });
    release.resolve();
    await consumer.drain();
    assert.deepEqual([deliveries.length, Math.max(...deliveries)], [count, 1]);
  });

  test("a message that is delivered again while this process works on it is not begun twice, and is acknowledged", async () => {
    let begun = 0;
    const release = Promise.withResolvers<void>();
    await publishStored(bus, subjects.rolloutJob("late"), RolloutJobSchema, job("late"));
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "late",
      filter: subjects.rolloutJob("late"),
      concurrency: 4,
      ackWaitMs: 400,
      handle: async () => {
        begun++;
        // The process reports nothing for longer than the server waits.
        for (const until = performance.now() + 1_000; performance.now() < until; );
        await release.promise;
      },
      onError: ignore,
    });
    const info = () => bus.manager.consumers.info(StreamName.jobs, "late");
    await eventually("a second delivery", async () => (await info()).delivered.consumer_seq >= 2);
    // Answers come in order, so the second delivery has arrived after this answer.
    await info();
    release.resolve();
    await eventually("its acknowledgement", async () => (await info()).num_ack_pending === 0);
    await consumer.drain();
    assert.equal(begun, 1);
  });

  test("consumeWork() returns its messages when it stops, and another consumer gets them at once", async () => {
    const options = {
      stream: StreamName.jobs,
      durable: "handover",
      filter: subjects.rolloutJob("handover"),
      concurrency: 1,
      onError: ignore,
    };
    const { promise: started, resolve: onStarted } = Promise.withResolvers<void>();
    const first = consumeWork(bus, RolloutJobSchema, {
      ...options,
      handle: () => {
        onStarted();
        return new Promise(ignore);
      },
    });
    await publishStored(bus, subjects.rolloutJob("handover"), RolloutJobSchema, job("handover"));
    await started;
    await first.stop();
    const { promise: again, resolve: onAgain } = Promise.withResolvers<number>();
    const second = consumeWork(bus, RolloutJobSchema, {
      ...options,
      handle: async ({ deliveries }) => onAgain(deliveries),
    });
    assert.equal(await again, 2);
    await second.drain();
  });

  test("a long job is not delivered again while its process lives", async () => {
    let deliveries = 0;
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "slow",
      filter: subjects.rolloutJob("slow"),
      concurrency: 4,
      ackWaitMs: 200,
      handle: async () => {
        deliveries++;
        await finished;
      },
      onError: fail,
    });
    await publishStored(bus, subjects.rolloutJob("slow"), RolloutJobSchema, job("slow"));
    await eventually("the delivery", () => deliveries === 1);
    // Several acknowledgement times pass on the server's clock.
    const since = Date.now();
    await eventually("four ack waits", () => Date.now() - since > 800);
    finish();
    await consumer.drain();
    assert.equal(deliveries, 1);
  });

  test("a message that cannot be decoded goes to DEAD with the reason, and work continues", async () => {
    const filter = subjects.rolloutJob("rubbish");
    const done: bigint[] = [];
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "rubbish",
      filter,
      concurrency: 1,
      handle: async ({ message }) => void done.push(message.cursor),
      onError: ignore,
    });
    await publishBytes(bus, filter, new Uint8Array([255, 255, 255]), undefined);
    await publishStored(bus, filter, RolloutJobSchema, job("rubbish", 9));
    await eventually("the good job", () => done.length === 1);
    await consumer.drain();
    const dead = await bus.manager.streams.getMessage(StreamName.dead, {
      last_by_subj: subjects.dead(StreamName.jobs),
    });
    assert.equal(dead?.header.get(DeadHeader.subject), filter);
    assert.match(dead?.header.get(DeadHeader.reason) ?? "", /RolloutJob/);
  });

  test("a message that its handler finds undecodable goes to DEAD unchanged, including its headers", async () => {
    const filter = subjects.rolloutJob("unfit");
    const consumer = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "unfit",
      filter,
      concurrency: 1,
      handle: async ({ message, subject }) => {
        await delay(1);
        throw new UndecodableMessageError(subject, `nobody can run ${message.runId}`);
      },
      onError: ignore,
    });
    const body = job("unfit", 7);
    const noted = headers();
    noted.set("hone-note", "kept");
    await publishBytes(bus, filter, toBinary(RolloutJobSchema, body), noted);
    const dead = await eventually("the dead letter", async () => {
      const last = await bus.manager.streams.getMessage(StreamName.dead, {
        last_by_subj: subjects.dead(StreamName.jobs),
      });
      return last?.header.get(DeadHeader.subject) === filter ? last : undefined;
    });
    await consumer.drain();
    assert.deepEqual(new Uint8Array(dead.data), toBinary(RolloutJobSchema, body));
    assert.equal(dead.header.get("hone-note"), "kept");
    assert.match(dead.header.get(DeadHeader.reason), /nobody can run unfit/);
    await eventually("the job to be gone", async () => {
      const { num_ack_pending } = await bus.manager.consumers.info(StreamName.jobs, "unfit");
      return num_ack_pending === 0;
    });
  });

  test("a body above the server's limit is sent through the object store and purged with its message", async () => {
    const subject = subjects.rolloutScored("large");
    const large = job("x".repeat(bus.maxPayloadBytes() * 2));
    const { sequence } = await publishStored(bus, subject, RolloutJobSchema, large, { messageId: "large" });
    const controller = new AbortController();
    for await (const item of readOrdered(bus, RolloutJobSchema, {
      stream: StreamName.episodes,
      filter: subject,
      fromSequence: sequence,
      signal: controller.signal,
    })) {
      assert.equal(item.message.runId.length, large.runId.length);
      assert.equal(item.sequence, sequence);
      break;
    }
    assert.equal(await purgeEpisodes(bus, "large", sequence + 1), 1);
    const { state } = await bus.manager.streams.info("OBJ_PAYLOADS_client");
    assert.equal(state.messages, 0);
  });

  test("purgeEpisodes() keeps what a durable reader has not acknowledged", async () => {
    const { sequence } = await publishStored(
      bus,
      subjects.rolloutFinished("kept"),
      RolloutJobSchema,
      job("kept"),
    );
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let seen = 0;
    const judge = consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.episodes,
      durable: "judge",
      filter: subjects.rolloutFinished("kept"),
      concurrency: 1,
      handle: async () => {
        seen++;
        await held;
      },
      onError: fail,
    });
    await eventually("the judge has it", () => seen === 1);
    assert.equal(await purgeEpisodes(bus, "kept", sequence + 1), 0);
    release();
    await judge.drain();
    await eventually(
      "the acknowledgement",
      async () => (await purgeEpisodes(bus, "kept", sequence + 1)) === 1,
    );
    await bus.manager.consumers.delete(StreamName.episodes, "judge");
  });

  test("compareAndSet() lets one of two writers win", async () => {
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    const state = (version: number): RunState => create(RunStateSchema, { runId: "cas", version });
    const revision = await bucket.compareAndSet("cas", state(1), 0);
    await assert.rejects(bucket.compareAndSet("cas", state(2), 0), RevisionConflictError);
    await bucket.compareAndSet("cas", state(2), revision);
    await assert.rejects(bucket.compareAndSet("cas", state(3), revision), RevisionConflictError);
    assert.equal((await bucket.get("cas"))?.value.version, 2);
  });

  test("watch() yields the present values, then changes and deletions", async () => {
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    await bucket.put("watched", create(RunStateSchema, { version: 1 }));
    const controller = new AbortController();
    const seen: Array<number | undefined> = [];
    for await (const change of bucket.watch(controller.signal)) {
      if (change.key !== "watched") continue;
      seen.push(change.value?.version);
      if (seen.length === 1) await bucket.put("watched", create(RunStateSchema, { version: 2 }));
      if (seen.length === 2) await bucket.delete("watched");
      if (seen.length === 3) break;
    }
    assert.deepEqual(seen, [1, 2, undefined]);
  });

  test("request() and requestStream() reject at once when nobody listens", async () => {
    const nobody = subjects.generate("nobody", "nowhere");
    await assert.rejects(
      request(bus, nobody, RolloutJobSchema, job("q"), RolloutJobSchema, { timeoutMs: 60_000 }),
      BusUnavailableError,
    );
    await assert.rejects(
      requestStream(bus, nobody, RolloutJobSchema, job("q"), RolloutJobSchema, {
        idleTimeoutMs: 60_000,
        deadlineMs: 60_000,
        isLast: () => true,
      }),
      BusUnavailableError,
    );
  });

  test("requestStream() ends with the last message, after its idle time-out or at its deadline", async () => {
    const subject = subjects.generate("model", "replica");
    const responder = respond(bus, subject, RolloutJobSchema, RolloutJobSchema, {
      handle: async ({ message, reply }) => {
        const beats = Number(message.cursor);
        for (let i = 0; i < beats; i++) await reply(job("beat"));
        if (message.runId === "answer") await reply(job("last"));
      },
      onError: fail,
    });
    const ask = (runId: string, limits: { idleTimeoutMs: number; deadlineMs: number }) => {
      let beats = 0;
      return requestStream(bus, subject, RolloutJobSchema, job(runId, 3), RolloutJobSchema, {
        ...limits,
        isLast: (reply) => reply.runId === "last",
        onMessage: () => beats++,
      }).then(() => beats);
    };
    assert.equal(await ask("answer", { idleTimeoutMs: 5_000, deadlineMs: 5_000 }), 3);
    await assert.rejects(ask("silence", { idleTimeoutMs: 50, deadlineMs: 5_000 }), BusUnavailableError);
    await assert.rejects(ask("silence", { idleTimeoutMs: 5_000, deadlineMs: 50 }), DeadlineError);
    await responder.drain();
  });
});
