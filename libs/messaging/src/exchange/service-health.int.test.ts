import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RunEventSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import {
  askHealth,
  BusUnavailableError,
  consumerBacklog,
  consumeWork,
  DurableName,
  publishBytes,
  publishStored,
  readDeadLetters,
  respondToHealth,
  StreamName,
  subjectCount,
  subjects,
} from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";

const fail = (error: unknown) => {
  throw error;
};

describe("health of services and backlog of streams", () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  test("askHealth() returns once all expected services answered, and names those that did not", async () => {
    const own = { instanceId: "judge-0", isReady: false, reasons: ["bus: disconnected"] };
    const responder = respondToHealth(bus, "judge", async () => own, fail);
    const startedAt = performance.now();
    const { replies, silent } = await askHealth(bus, { expected: ["judge"], timeoutMs: 30_000 });
    assert.ok(performance.now() - startedAt < 10_000);
    assert.deepEqual(
      replies.map(({ service, reasons }) => ({ service, reasons })),
      [{ service: "judge", reasons: ["bus: disconnected"] }],
    );
    assert.deepEqual(silent, []);
    const later = await askHealth(bus, { expected: ["judge", "trainer"], timeoutMs: 50 });
    assert.deepEqual(later.silent, ["trainer"]);
    await responder.drain();
  });

  test("askHealth() distinguishes a bus that does not answer from services that do not", async () => {
    assert.deepEqual((await askHealth(bus, { expected: ["judge"] })).silent, ["judge"]);
    process.kill(bus.server.pid, "SIGSTOP");
    try {
      // A process may answer once more before its stop reaches it.
      await eventually("askHealth() to reject because of the bus", () =>
        askHealth(bus, { timeoutMs: 50 }).then(
          () => false,
          (error) => error instanceof BusUnavailableError,
        ),
      );
    } finally {
      process.kill(bus.server.pid, "SIGCONT");
    }
  });

  test("consumerBacklog() and subjectCount() count waiting messages and messages in work", async () => {
    const subject = subjects.event("counted", "ended");
    for (let i = 0; i < 3; i++) {
      await publishStored(bus, subject, RunEventSchema, create(RunEventSchema, { runId: "counted" }));
    }
    const nobody = await consumerBacklog(bus, StreamName.episodes, DurableName.finishedEpisodes);
    assert.deepEqual(nobody, { pending: 0, inWork: 0, redelivered: 0 });
    const work = Promise.withResolvers<void>();
    const consumer = consumeWork(bus, RunEventSchema, {
      stream: StreamName.events,
      durable: DurableName.events,
      filter: subject,
      concurrency: 1,
      handle: () => work.promise,
      onError: fail,
    });
    const backlog = await eventually("one in work", async () => {
      const now = await consumerBacklog(bus, StreamName.events, DurableName.events);
      return now.inWork === 1 && now;
    });
    assert.deepEqual(backlog, { pending: 2, inWork: 1, redelivered: 0 });
    assert.equal(await subjectCount(bus, StreamName.events, subject), 3);
    work.resolve();
    await consumer.drain();
  });

  test("readDeadLetters() counts messages that cannot be decoded, which are not delivered again", async () => {
    assert.deepEqual(await readDeadLetters(bus), { count: 0, last: undefined });
    const subject = subjects.event("broken", "ended");
    await publishBytes(bus, subject, "\xff\xff no protobuf", undefined);
    const consumer = consumeWork(bus, RunEventSchema, {
      stream: StreamName.events,
      durable: DurableName.scoredEpisodes,
      filter: subject,
      concurrency: 1,
      handle: async () => undefined,
      onError: () => undefined,
    });
    const { count, last } = await eventually("the dead letter", async () => {
      const dead = await readDeadLetters(bus);
      return dead.count > 0 && dead;
    });
    assert.equal(count, 1);
    assert.equal(last?.subject, subject);
    assert.match(last?.reason ?? "", /^Cannot decode a message/);
    await eventually("the message to be acknowledged", async () => {
      const { pending, inWork } = await consumerBacklog(bus, StreamName.events, DurableName.scoredEpisodes);
      return pending + inWork === 0;
    });
    await consumer.drain();
  });
});
