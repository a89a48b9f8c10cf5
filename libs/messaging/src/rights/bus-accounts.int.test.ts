/**
 * An attacker who controls one service makes the server answer to the subjects of others. This is tried on a bus with an
 * account for each service, and on one with a single account, which shows that the attempts would do harm.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { delay } from "@hone/core";
import type { RunningNats } from "@hone/embedded";
import { HealthReplySchema, HealthRequestSchema } from "@hone/proto-gen/service";
import { eventually, startNats } from "@hone/testing";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Bus, connectBus } from "../bus.ts";
import { publishBytes } from "../exchange/publish.ts";
import { request } from "../exchange/request.ts";
import { respond } from "../exchange/respond.ts";
import { payloadWriterOf } from "../payloads/payload-stores.ts";
import { makeDurables } from "../streams/durables.ts";
import { ensureTopology, StreamName } from "../streams/streams.ts";
import { ServiceName, subjects } from "../subjects.ts";
import { busAccounts, usersIn } from "./bus-accounts.ts";
import { BUS_USERS, type BusRights, type BusUser, busRights, inboxPrefixOf } from "./bus-rights.ts";

/** The trainer creates the streams, so nothing protects them from it. */
const ATTACKERS = BUS_USERS.filter((user) => user !== ServiceName.trainer);
/** One message on each subject exists before the attack and must exist afterwards. */
const SEEDS: readonly (readonly [stream: string, subject: string])[] = [
  [StreamName.runs, subjects.runRequest()],
  [StreamName.jobs, subjects.rolloutJob("seed")],
  [StreamName.episodes, subjects.rolloutFinished("seed")],
  [StreamName.events, subjects.event("seed", "ended")],
  [StreamName.dead, subjects.dead("SEED")],
  ["KV_RUN_STATE", "$KV.RUN_STATE.seed"],
  ["KV_REPLICAS", "$KV.REPLICAS.seed.seed"],
  ["KV_DEATHS", "$KV.DEATHS.seed"],
];
/** Subjects that an answer could be sent to: messages there destroy streams, or count as work, scores and states. */
const TARGETS = [
  ...SEEDS.flatMap(([stream]) => [`$JS.API.STREAM.DELETE.${stream}`, `$JS.API.STREAM.PURGE.${stream}`]),
  "$JS.API.STREAM.DELETE.OBJ_PAYLOADS_judge",
  "$JS.API.CONSUMER.DELETE.EPISODES.judge",
  "$JS.API.CONSUMER.DELETE.JOBS.agent-rollout",
  subjects.runRequest(),
  subjects.rolloutJob("forged"),
  subjects.rolloutFinished("forged"),
  subjects.rolloutScored("forged"),
  subjects.event("forged", "ended"),
  "$KV.RUN_STATE.forged",
  "$KV.REPLICAS.forged.forged",
];
/** A message exists for each request that is allowed. */
const GET_SEED = JSON.stringify({ seq: 1 });
/** A user with all rights, who checks what is left. */
const OWNER = "owner";
const SETTLE_MS = 100;
/** The end of an acknowledgement for a message that does not exist, as a user may acknowledge its own work. */
const NO_DELIVERY = "1.999.999.1.0";
/** A pull that ends at once, with an empty answer if there is no work. */
const PULL = JSON.stringify({ batch: 10, no_wait: true });

describe("a bus with an account for each service", () => {
  test("no user can make the server publish or delete what the user itself may not", async () => {
    for (const attacker of ATTACKERS) {
      await using bus = await startBus(true);
      assert.deepEqual(await bus.attack(attacker), [], attacker);
    }
  });

  test("on a bus with one account every user can make the server empty streams or publish answers into them", async () => {
    for (const attacker of ATTACKERS) {
      await using bus = await startBus(false);
      const harm = await bus.attack(attacker);
      assert.notDeepEqual(harm, [], attacker);
    }
  });

  describe("passes on what the table of rights allows", () => {
    let bus: TestBus;
    before(async () => {
      bus = await startBus(true);
    });
    after(() => bus?.[Symbol.asyncDispose]());

    test("requests: each one that a user may send is answered by the service it is for, and by no other", async () => {
      const schemas = [HealthRequestSchema, HealthReplySchema] as const;
      const rights = busRights();
      for (const [hearer, asker, subject] of questions(rights)) {
        const answering = await bus.connect(hearer);
        const responder = respond(answering, subject, ...schemas, {
          handle: async ({ subject: asked, reply }) =>
            reply(create(HealthReplySchema, { service: hearer, instanceId: asked })),
          onError: (error) => assert.fail(String(error)),
        });
        await answering.connection.flush();
        const asking = await bus.connect(asker);
        const question = create(HealthRequestSchema);
        const answer = await request(asking, subject, schemas[0], question, schemas[1], {
          timeoutMs: 10_000,
        });
        assert.deepEqual([answer.service, answer.instanceId], [hearer, subject], `${asker} asks`);
        await responder.drain();
      }
    });

    test("answers that are larger than a message", async () => {
      const large = "x".repeat(700_000);
      for (const [hearer, asker, subject] of [
        ["dataset", "trainer", subjects.datasetBatch()],
        ["dataset", "agent-rollout", subjects.datasetBatch()],
        ["judge", "trainer", subjects.judgeGroup()],
        ["judge", "client", subjects.judgeScore()],
      ] as const) {
        const schemas = [HealthRequestSchema, HealthReplySchema] as const;
        const answering = await bus.connect(hearer);
        const responder = respond(answering, subject, ...schemas, {
          handle: async ({ reply }) => reply(create(HealthReplySchema, { service: large })),
          onError: (error) => assert.fail(String(error)),
        });
        await answering.connection.flush();
        const question = create(HealthRequestSchema);
        const options = { timeoutMs: 10_000 };
        const asking = await bus.connect(asker);
        const answer = await request(asking, subject, schemas[0], question, schemas[1], options);
        assert.ok(answer.service === large, `${asker} asks ${hearer}`);
        await responder.drain();
      }
    });

    test("messages that are stored reach the users who may receive them", async () => {
      for (const [writer, reader, subject] of [
        ["trainer", "agent-rollout", "$KV.RUN_STATE.woken"],
        ["trainer", "inference-gateway", "$KV.RUN_STATE.woken"],
        ["trainer", "tracer", "$KV.RUN_STATE.woken"],
        ["inference-gateway", "agent-rollout", "$KV.REPLICAS.woken.woken"],
        ["trainer", "client", subjects.event("woken", "ended")],
      ] as const) {
        const reading = await bus.connect(reader);
        const filter = subject.replace(/\.(?:woken|ended)(?=\.|$)/g, "").concat(".>");
        let heard = 0;
        const heardBy = subject.startsWith("hone.") ? "hone.v1.event.>" : filter;
        const subscription = reading.connection.subscribe(heardBy, { callback: () => void heard++ });
        await reading.connection.flush();
        await publishBytes(await bus.connect(writer), subject, "{}", undefined);
        await eventually(`${reader} to hear of ${subject}`, () => heard === 1);
        subscription.unsubscribe();
      }
    });
  });
});

describe("busAccounts()", () => {
  test("imports no subject that the rights do not name", () => {
    const rights = busRights();
    for (const { imports, exports, users } of Object.values(busAccounts())) {
      for (const [user, { publish, subscribe }] of Object.entries(users)) {
        assert.deepEqual(
          publish.filter((each) => !rights[user as BusUser].publish.includes(each)),
          ["_R_.>"],
        );
        assert.deepEqual(subscribe, rights[user as BusUser].subscribe);
      }
      const destroys =
        /STREAM\.(DELETE|PURGE|CREATE|UPDATE|RESTORE)|CONSUMER\.(CREATE|DELETE|DURABLE)|"\$JS\.API\.>"|">"/;
      assert.doesNotMatch(JSON.stringify([imports, exports]), destroys);
    }
  });

  test("refuses rights by which one message would go to two accounts", () => {
    const rights = busRights();
    const { publish, subscribe } = rights.dataset;
    const both = { publish, subscribe: [...subscribe, subjects.judgeScore()] };
    assert.throws(
      () => busAccounts({ ...rights, dataset: both }),
      /HONE-client cannot import hone.v1.judge.score .* a message would go to both/,
    );
  });
});

interface TestBus extends AsyncDisposable {
  connect(user: BusUser): Promise<Bus>;
  /** Sends every request that a user may send, with every target as the reply subject. @returns the harm done. */
  attack(user: BusUser): Promise<string[]>;
}

/** A bus whose streams hold messages. */
async function startBus(hasAccounts: boolean): Promise<TestBus> {
  const accounts = busAccounts();
  const users = [{ name: OWNER }, ...usersIn(accounts)] as const;
  const nats: RunningNats = await startNats({ users, ...(hasAccounts && { accounts }) });
  const buses = new Map<BusUser, Bus>();
  const open = async (user: BusUser) => {
    const known = buses.get(user);
    if (known !== undefined) return known;
    const bus = await connectBus({
      url: nats.urlOf(user),
      name: user,
      user: payloadWriterOf(user),
      inboxPrefix: inboxPrefixOf(user),
    });
    buses.set(user, bus);
    return bus;
  };
  const owner = await connectBus({ url: nats.urlOf(OWNER), name: OWNER });
  await ensureTopology(owner);
  await makeDurables(owner);
  const writerOf = (subject: string) =>
    BUS_USERS.find((user) => busRights()[user].publish.some((each) => covers(each, subject))) ??
    assert.fail(subject);
  for (const [, subject] of SEEDS)
    await publishBytes(await open(writerOf(subject)), subject, "{}", undefined);

  const harmDone = async (attacker: BusUser): Promise<string[]> => {
    const harm: string[] = [];
    for (const [stream, subject] of SEEDS) {
      const left = await owner.manager.streams
        .getMessage(stream, { last_by_subj: subject })
        .catch(() => null);
      if (left === null) harm.push(`${stream} is gone or empty`);
    }
    await owner.manager.streams
      .info("OBJ_PAYLOADS_judge")
      .catch(() => harm.push("OBJ_PAYLOADS_judge is gone or empty"));
    for (const [stream, durable] of [
      ["EPISODES", "judge"],
      ["JOBS", "agent-rollout"],
    ] as const) {
      await owner.manager.consumers.info(stream, durable).catch(() => harm.push(`${durable} is gone`));
    }
    const own = busRights()[attacker].publish;
    for (const target of TARGETS.filter(
      (each) => !each.startsWith("$JS.") && !own.some((may) => covers(may, each)),
    )) {
      const stream =
        SEEDS.find(([, subject]) => covers(subject.replace(/seed/g, "*"), target))?.[0] ?? "EPISODES";
      const found = await owner.manager.streams
        .getMessage(stream, { last_by_subj: target })
        .catch(() => null);
      if (found !== null && found.string() !== "{}") harm.push(`${target} is forged`);
    }
    return harm;
  };
  return {
    connect: open,
    async attack(user) {
      const { username, password } = new URL(nats.urlOf(user));
      const raw = await connect({
        servers: `127.0.0.1:${nats.port}`,
        user: username,
        pass: password,
        reconnect: false,
      });
      for (const subject of busRights()[user].publish) {
        const asked = subject.replace(/\*/g, "EPISODES").replace(/>$/, NO_DELIVERY);
        for (const reply of TARGETS) {
          for (const body of ["", "{}", GET_SEED, PULL]) raw.publish(asked, body, { reply });
        }
      }
      await raw.flush();
      await settle(raw, owner);
      await raw.close();
      return harmDone(user);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([owner, ...buses.values()].map((bus) => bus.close()));
      await nats.stop();
    },
  };
}

/** The server handles JetStream requests one after the other, so the answer to this one comes after all earlier ones. */
async function settle(attacker: NatsConnection, owner: Bus): Promise<void> {
  await attacker.flush();
  for (let i = 0; i < 3; i++) {
    await owner.manager.streams.names().next();
    await delay(SETTLE_MS);
  }
}

/** All requests of the table that a service or a client answers, each with a concrete subject. */
function questions(
  rights: Readonly<Record<BusUser, BusRights>>,
): [hearer: BusUser, asker: BusUser, subject: string][] {
  return BUS_USERS.flatMap((hearer) =>
    rights[hearer].subscribe
      .filter((heard) => heard.startsWith("hone.") && !heard.startsWith("hone.v1.event."))
      .flatMap((heard) =>
        BUS_USERS.filter((asker) => rights[asker].publish.includes(heard) && !heard.includes("abort")).map(
          (asker): [BusUser, BusUser, string] => [hearer, asker, heard.replace(/\*/g, "x")],
        ),
      ),
  );
}

function covers(pattern: string, subject: string): boolean {
  const source = pattern
    .replaceAll("$", "\\$")
    .replaceAll(".", "\\.")
    .replaceAll("*", "[^.]+")
    .replace(/>$/, ".+");
  return new RegExp(`^${source}$`).test(subject);
}
