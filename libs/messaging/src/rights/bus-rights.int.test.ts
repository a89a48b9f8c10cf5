/** What each user of the bus may do, tested on a real server as an attacker who controls that service. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { RunningNats } from "@hone/embedded";
import { startNats } from "@hone/testing";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Bus, connectBus } from "../bus.ts";
import { ensureTopology } from "../streams/streams.ts";
import { ServiceName } from "../subjects.ts";
import { BUS_USERS, type BusUser, busRights, inboxPrefixOf, SENDING_USERS } from "./bus-rights.ts";
import { StreamsRole } from "./streams-role.ts";

const STREAMS = ["RUNS", "JOBS", "EPISODES", "EVENTS", "DEAD"] as const;
const EVERYBODY: readonly BusUser[] = BUS_USERS;
const PAYLOADS = SENDING_USERS.map((user) => `OBJ_PAYLOADS_${user}`);
const BUCKETS = ["KV_RUN_STATE", "KV_REPLICAS", "KV_REWARDS", "KV_DEATHS", ...PAYLOADS];

/** Subjects that only some users may publish. */
const RESERVED: readonly [subject: string, ...mayPublish: readonly BusUser[]][] = [
  ["hone.v1.run.request", "client"],
  ["hone.v1.run.cancel.r", "client", "tracer"],
  ["hone.v1.run.pause.r", "client", "tracer"],
  ["hone.v1.run.resume.r", "client", "tracer"],
  ["hone.v1.run.status.r", "client"],
  ["hone.v1.rollout.job.r", "trainer"],
  ["hone.v1.rollout.finished.r", "agent-rollout"],
  ["hone.v1.rollout.scored.r", "judge"],
  ["hone.v1.rollout.render", "tracer"],
  ["hone.v1.event.r.ended", "trainer"],
  ["hone.v1.policy.generate.m.r", "agent-rollout"],
  ["hone.v1.judge.group", "trainer"],
  ["hone.v1.judge.score", "client"],
  ["hone.v1.judge.reward.session", "agent-rollout"],
  ["hone.v1.judge.reward.client", "client"],
  ["hone.v1.judge.reward.page", "tracer"],
  ["$KV.REWARDS.open.r.train.1.0.0", "judge"],
  ["$KV.REWARDS.given.r.train.1.0.0", "judge"],
  ["$JS.API.STREAM.PURGE.KV_REWARDS", "trainer"],
  ["$JS.API.STREAM.MSG.GET.KV_REWARDS", "judge", "trainer", "client", "tracer"],
  ["$KV.RUN_STATE.r", "trainer"],
  ["$KV.REPLICAS.m.r", "inference-gateway"],
  ["$JS.ACK.JOBS.agent-rollout.1.1.1.1.0", "agent-rollout"],
  ["$JS.ACK.EPISODES.judge.1.1.1.1.0", "judge"],
  ["$JS.ACK.EPISODES.tracer-rollouts.1.1.1.1.0", "tracer"],
  ["$JS.ACK.RUNS.trainer.1.1.1.1.0", "trainer"],
  ["$JS.API.CONSUMER.MSG.NEXT.JOBS.agent-rollout", "agent-rollout"],
  ["$JS.API.CONSUMER.DELETE.EPISODES.judge", "trainer"],
  ["$JS.API.STREAM.PURGE.EPISODES", "trainer"],
  ["$JS.API.STREAM.PURGE.JOBS", "trainer"],
  ...SENDING_USERS.flatMap((user): [string, ...BusUser[]][] => [
    [`$JS.API.STREAM.PURGE.OBJ_PAYLOADS_${user}`, "trainer"],
    [`$O.PAYLOADS_${user}.C.once.x`, user],
    [`$O.PAYLOADS_${user}.M.x`, user],
  ]),
  // The bucket of older releases, which is only read and emptied.
  ["$O.PAYLOADS.C.x"],
  ["$O.PAYLOADS.M.x"],
  ["$JS.API.STREAM.PURGE.OBJ_PAYLOADS", "trainer"],
  ["$JS.API.STREAM.CREATE.OBJ_PAYLOADS"],
  // A consumer delivers to any subject that its creator names, also if the creator may not publish there.
  ...[...STREAMS, ...BUCKETS].flatMap((stream): [string, ...BusUser[]][] => [
    [`$JS.API.CONSUMER.CREATE.${stream}.any`, "trainer"],
    [`$JS.API.CONSUMER.CREATE.${stream}.any.filter`, "trainer"],
    [`$JS.API.CONSUMER.DURABLE.CREATE.${stream}.any`, "trainer"],
    [`$JS.API.DIRECT.GET.${stream}`],
    [`$JS.API.DIRECT.GET.${stream}.a`],
  ]),
  ["$JS.API.CONSUMER.CREATE.OTHER.any"],
  ["$JS.API.STREAM.MSG.GET.RUNS", "trainer"],
  ["$JS.API.STREAM.MSG.GET.EVENTS", "trainer", "tracer", "client", "sinks"],
  // The sinks read events, and send nothing to anybody.
  ["hone.v1.dead.EVENTS", ...Object.values(ServiceName)],
  ["hone.v1.trainer.health", "trainer", "tracer", "client"],
  ["$JS.API.STREAM.MSG.GET.JOBS", "agent-rollout"],
  // What a service receives besides answers, such as the messages of a stream, comes from the server only.
  ...EVERYBODY.filter((user) => user !== "client").map((user): [string] => [`_INBOX_${user}.messages`]),
  ["_INBOX_agent-rollout.answer.x", "dataset", "inference-gateway", "judge"],
  ["_INBOX_inference-gateway.answer.x"],
  ["_INBOX_judge.answer.x"],
  ["_INBOX_dataset.answer.x"],
  ...[...STREAMS, ...BUCKETS].flatMap((stream): [string, ...BusUser[]][] => [
    [`$JS.API.STREAM.CREATE.${stream}`, "trainer"],
    [`$JS.API.STREAM.UPDATE.${stream}`, "trainer"],
    [`$JS.API.STREAM.DELETE.${stream}`],
    [`$JS.API.STREAM.MSG.DELETE.${stream}`],
    [`$JS.API.STREAM.SNAPSHOT.${stream}`],
    [`$JS.API.STREAM.RESTORE.${stream}`],
  ]),
  ["$JS.API.STREAM.CREATE.OTHER"],
  ["$JS.API.STREAM.TEMPLATE.CREATE.OTHER"],
  ["$SYS.REQ.SERVER.PING"],
  ["anything.else"],
];

describe("busRights()", () => {
  let nats: RunningNats;
  const buses = new Map<BusUser, Bus>();

  before(async () => {
    const [first, ...others] = BUS_USERS.map((name) => ({ name, rights: busRights()[name] }));
    assert.ok(first !== undefined);
    nats = await startNats({ users: [first, ...others] });
    for (const user of EVERYBODY) {
      buses.set(
        user,
        await connectBus({ url: nats.urlOf(user), name: user, inboxPrefix: inboxPrefixOf(user) }),
      );
    }
  });
  after(async () => {
    await Promise.all([...buses.values()].map((bus) => bus.close()));
    await nats?.stop();
  });

  test("the trainer can create the streams, and every other service can use them", async () => {
    await ensureTopology(busOf("trainer"));
    for (const user of SENDING_USERS) await ensureTopology(busOf(user), { role: StreamsRole.await });
  });

  for (const [subject, ...may] of RESERVED) {
    test(`${may.length === 0 ? "nobody" : may.join(" and ")} may publish ${subject}`, async () => {
      const allowed = await Promise.all(
        EVERYBODY.map(async (user) => ((await isRefused(user, subject)) ? [] : [user])),
      );
      // Clients receive answers below one prefix, and their program chooses the rest of the subject.
      assert.deepEqual(allowed.flat().sort(), [...may].sort());
    });
  }

  test("nobody receives what is meant for another: answers, requests, messages of streams", async () => {
    for (const listener of EVERYBODY) {
      const others = EVERYBODY.filter((user) => user !== listener);
      const subjects = [
        ...others.map((user) => `${inboxPrefixOf(user)}.>`),
        "hone.v1.rollout.>",
        "hone.v1.run.request",
        "$KV.>",
        "$JS.>",
        ">",
      ];
      for (const subject of subjects) {
        assert.ok(await isRefusedToSubscribe(listener, subject), `${listener} hears ${subject}`);
      }
    }
  });

  test("a service that answered one request cannot guess the reply subject of another", async () => {
    const heard: string[] = [];
    const asker = busOf("trainer");
    for (let i = 0; i < 3; i++) {
      const reply = asker.replies.open(() => undefined);
      heard.push(reply.subject);
      reply.close();
    }
    for (const subject of heard) assert.match(subject, /^_INBOX_trainer\.answer\.[\w-]{16}\.[\w-]{16}$/);
    const tokens = heard.map((subject) => subject.split(".").at(-1));
    assert.equal(new Set(tokens).size, heard.length);
  });

  const busOf = (user: BusUser): Bus => buses.get(user) ?? assert.fail(user);

  /** Whether the server refuses a message of a user; its contents are meaningless. */
  async function isRefused(user: BusUser, subject: string): Promise<boolean> {
    const connection = await open(user);
    const said = errorsOf(connection);
    connection.publish(subject, "{}");
    await connection.flush();
    await connection.close();
    return (await said).some((text) => text.includes(`"${subject}"`));
  }

  async function isRefusedToSubscribe(user: BusUser, subject: string): Promise<boolean> {
    const connection = await open(user);
    const subscription = connection.subscribe(subject);
    const isRefused = (async () => {
      for await (const _ of subscription) break;
    })().then(
      () => false,
      () => true,
    );
    await connection.flush(); // the refusal comes before this answer
    const isOpen = connection.flush().then(() => false);
    const result = await Promise.race([isRefused, isOpen]);
    await connection.close();
    return result;
  }

  const open = (user: BusUser): Promise<NatsConnection> => {
    const { username, password } = new URL(nats.urlOf(user));
    return connect({ servers: `127.0.0.1:${nats.port}`, user: username, pass: password, reconnect: false });
  };
});

/** The errors that the server reports to a connection until it ends. */
async function errorsOf(connection: NatsConnection): Promise<string[]> {
  const errors: string[] = [];
  for await (const status of connection.status()) {
    if (status.type === "error") errors.push(status.error.message);
  }
  return errors;
}
