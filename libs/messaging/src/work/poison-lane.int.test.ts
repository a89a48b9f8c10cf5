import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type RolloutJob, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { eventually } from "@hone/testing";
import {
  type ConsumeWorkOptions,
  connectBus,
  consumeWork,
  publishStored,
  StreamName,
  subjects,
} from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";
import { FREE_DELIVERIES, MAX_DEATHS } from "./poison-lane.ts";

/* A process dies here as the bus sees it: its connection ends without an acknowledgement, and its work stops. */

const ACK_WAIT_MS = 300;
const POISON = 5;

describe("a message that kills its process", { timeout: 60_000 }, () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  /** Runs a process until `kills` returns true for a message, or no message is left. @returns whether it died. */
  async function live(
    run: string,
    own: Pick<ConsumeWorkOptions<RolloutJob>, "handle" | "putAside">,
    kills: (job: RolloutJob) => boolean,
  ): Promise<boolean> {
    const process = await connectBus({ url: bus.server.url, name: "process" });
    const death = Promise.withResolvers<never>();
    death.promise.catch(() => undefined);
    let isDead = false;
    const mortal = async (job: RolloutJob, work: () => Promise<void>) => {
      if (kills(job)) {
        isDead = true;
        await process.connection.close();
        death.reject(new Error("dead"));
      }
      await (isDead ? death.promise : work());
    };
    const consumer = consumeWork(process, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: `poison-${run}`,
      filter: subjects.rolloutJob(run),
      concurrency: 64,
      ackWaitMs: ACK_WAIT_MS,
      retryDelayMs: 20,
      handle: (item) => mortal(item.message, () => own.handle(item)),
      ...(own.putAside !== undefined && { putAside: own.putAside }),
      onError: () => undefined,
    });
    const isEmpty = async () => {
      const { num_pending, num_ack_pending } = await bus.manager.consumers.info(
        StreamName.jobs,
        `poison-${run}`,
      );
      return num_pending + num_ack_pending === 0;
    };
    await eventually("the end of a life", async () => isDead || (await isEmpty()), { deadlineMs: 20_000 });
    await consumer.stop();
    await process.close();
    return isDead;
  }

  test("is set aside after it killed processes alone, and messages that were in work with it are not", async () => {
    const run = "deadly";
    const count = 12;
    for (let cursor = 0; cursor < count; cursor++) {
      await publishStored(
        bus,
        subjects.rolloutJob(run),
        RolloutJobSchema,
        create(RolloutJobSchema, { runId: run, cursor: BigInt(cursor) }),
      );
    }
    const done: number[] = [];
    const aside: Array<[number, number]> = [];
    const own = {
      handle: async ({ message }: { message: RolloutJob }) => {
        // Long enough that the messages in work with the deadly one are never done before it kills.
        await new Promise((resolve) => setTimeout(resolve, 20));
        done.push(Number(message.cursor));
      },
      putAside: async ({ message }: { message: RolloutJob }, deaths: number) => {
        aside.push([Number(message.cursor), deaths]);
      },
    };
    let lives = 0;
    while (await live(run, own, ({ cursor }) => Number(cursor) === POISON)) {
      assert.ok(++lives <= FREE_DELIVERIES + MAX_DEATHS, "the deadly message is not set aside");
    }
    assert.equal(lives, FREE_DELIVERIES + MAX_DEATHS);
    assert.deepEqual(aside, [[POISON, MAX_DEATHS]]);
    const others = Array.from({ length: count }, (_, i) => i).filter((i) => i !== POISON);
    assert.deepEqual(
      [...new Set(done)].sort((a, b) => a - b),
      others,
    );
  });

  test("is distinguished from a message that was only in work during kills, which is tried until it succeeds", async () => {
    const run = "unlucky";
    await publishStored(
      bus,
      subjects.rolloutJob(run),
      RolloutJobSchema,
      create(RolloutJobSchema, { runId: run }),
    );
    let deaths = 0;
    let refusals = 0;
    let isDone = false;
    const own = {
      handle: async () => {
        // Failures of a living process are not deaths, however many there are.
        if (++refusals <= 2 * MAX_DEATHS) throw new Error("not now");
        isDone = true;
      },
      putAside: async () => assert.fail("it killed nobody in the end"),
    };
    const mayKill = () => deaths < FREE_DELIVERIES + MAX_DEATHS - 1 && ++deaths > 0;
    while (await live(run, own, mayKill));
    assert.ok(isDone);
    assert.equal(deaths, FREE_DELIVERIES + MAX_DEATHS - 1);
  });
});
