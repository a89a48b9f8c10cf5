/* Large payloads, each in its writer's bucket, tested with every user of the bus on a real server. */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import type { RunningNats } from "@hone/embedded";
import { type RolloutJob, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { eventually, startNats } from "@hone/testing";
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Bus, connectBus } from "../bus.ts";
import { PayloadStoreFullError, UndecodableMessageError } from "../errors.ts";
import { publishStored } from "../exchange/publish.ts";
import { busRights, inboxPrefixOf, SENDING_USERS } from "../rights/bus-rights.ts";
import { purgeEpisodes } from "../streams/purge-episodes.ts";
import { EVENTS_MAX_AGE_MS, ensureTopology, StreamName } from "../streams/streams.ts";
import { subjects } from "../subjects.ts";
import { decodeBody, encodeBody, objectOf } from "./payload.ts";
import { MIN_AGE_MS, removeOldPayloads } from "./payload-janitor.ts";
import { BodyKind, bodyKindOf, type PayloadWriter } from "./payload-stores.ts";

const DAY_MS = 24 * 3_600_000;

/** A job that is too large for a message. */
const large = (runId = "large", bytes = 2_000_000): RolloutJob =>
  create(RolloutJobSchema, { runId, agentConfigJson: randomBytes(bytes / 2).toString("hex") });
const streamOf = (user: PayloadWriter) => `OBJ_PAYLOADS_${user}`;

/** A message that points to a user's object. */
interface Sent {
  readonly message: RolloutJob;
  readonly headers: MsgHdrs;
  readonly name: string;
}

async function send(bus: Bus, kind: BodyKind = BodyKind.once): Promise<Sent> {
  const message = large();
  const { headers: pointer } = await encodeBody(bus, RolloutJobSchema, message, kind);
  assert.ok(pointer !== undefined);
  return { message, headers: pointer, name: objectOf(pointer)?.name ?? assert.fail() };
}

const read = (bus: Bus, pointer: MsgHdrs) =>
  decodeBody(bus, RolloutJobSchema, {
    subject: "hone.v1.dataset.batch",
    data: new Uint8Array(),
    headers: pointer,
  });

const messagesIn = async (bus: Bus, stream: string) =>
  (await bus.manager.streams.info(stream)).state.messages;

describe("large payloads of the users of the bus", { timeout: 180_000 }, () => {
  let nats: RunningNats;
  const buses = new Map<PayloadWriter, Bus>();
  const busOf = (user: PayloadWriter): Bus => buses.get(user) ?? assert.fail(user);

  before(async () => {
    const [first, ...others] = SENDING_USERS.map((name) => ({ name, rights: busRights()[name] }));
    assert.ok(first !== undefined);
    nats = await startNats({ users: [first, ...others] });
    for (const user of SENDING_USERS) {
      const url = nats.urlOf(user);
      buses.set(user, await connectBus({ url, name: user, user, inboxPrefix: inboxPrefixOf(user) }));
    }
    await ensureTopology(busOf("trainer"));
  });
  after(async () => {
    await Promise.all([...buses.values()].map((bus) => bus.close()));
    await nats?.stop();
  });

  test("each is stored in its writer's bucket, and every user can read it", async () => {
    for (const user of SENDING_USERS) {
      const sent = await send(busOf(user));
      assert.equal(sent.headers.get("hone-store"), `PAYLOADS_${user}`);
      assert.ok((await messagesIn(busOf("trainer"), streamOf(user))) > 0);
      for (const reader of SENDING_USERS) {
        assert.deepEqual(await read(busOf(reader), sent.headers), sent.message, `${reader} reads ${user}'s`);
      }
    }
  });

  for (const user of SENDING_USERS) {
    test(`${user} cannot store, replace, remove or purge an object in another user's bucket, nor create a bucket`, async () => {
      for (const owner of SENDING_USERS.filter((each) => each !== user)) {
        const sent = await send(busOf(owner));
        const held = await messagesIn(busOf("trainer"), streamOf(owner));
        const parts = `$O.PAYLOADS_${owner}.C.${sent.name}`;
        const rollup = headers();
        rollup.set("Nats-Rollup", "all");
        const attacks: [string, string, MsgHdrs?][] = [
          [`$O.PAYLOADS_${owner}.C.once.another`, "put"],
          [parts, "replaced", rollup],
          [`$JS.API.STREAM.MSG.DELETE.${streamOf(owner)}`, '{"seq":1}'],
          [`$JS.API.STREAM.DELETE.${streamOf(owner)}`, ""],
          [
            `$JS.API.STREAM.CREATE.OBJ_PAYLOADS_mine`,
            '{"name":"OBJ_PAYLOADS_mine","subjects":["$O.mine.>"]}',
          ],
        ];
        if (user !== "trainer") {
          attacks.push([`$JS.API.STREAM.PURGE.${streamOf(owner)}`, ""]);
          attacks.push([
            `$JS.API.STREAM.UPDATE.${streamOf(owner)}`,
            `{"name":"${streamOf(owner)}","subjects":["$O.PAYLOADS_${owner}.>"],"max_msgs":1}`,
          ]);
        }
        const connection = await open(user);
        const refusals = errorsOf(connection);
        for (const [subject, data, head] of attacks) {
          connection.publish(subject, data, {
            reply: `${inboxPrefixOf(user)}.answer.x`,
            ...(head === undefined ? {} : { headers: head }),
          });
        }
        await connection.flush();
        await connection.close();
        const said = await refusals;
        for (const [subject] of attacks)
          assert.ok(
            said.some((text) => text.includes(`"${subject}"`)),
            `${user}: ${subject}`,
          );
        assert.equal(await messagesIn(busOf("trainer"), streamOf(owner)), held);
        assert.deepEqual(await read(busOf("trainer"), sent.headers), sent.message);
      }
    });
  }

  test("a writer can remove its own object with an empty message, and the trainer can purge every object", async () => {
    const trainer = busOf("trainer");
    for (const user of SENDING_USERS) {
      await trainer.manager.streams.purge(streamOf(user));
      const sent = await send(busOf(user));
      const rollup = headers();
      rollup.set("Nats-Rollup", "sub");
      busOf(user).connection.publish(`$O.PAYLOADS_${user}.C.${sent.name}`, "", { headers: rollup });
      await eventually("one message", async () => (await messagesIn(trainer, streamOf(user))) === 1);
      await assert.rejects(read(trainer, sent.headers), /has a part of 0 bytes/);
      await trainer.manager.streams.purge(streamOf(user), { filter: `$O.PAYLOADS_${user}.C.${sent.name}` });
      assert.equal(await messagesIn(trainer, streamOf(user)), 0);
      await assert.rejects(read(trainer, sent.headers), /is gone/);
    }
  });

  test("large episodes are removed from both writers' buckets together with their messages", async () => {
    const trainer = busOf("trainer");
    for (const user of ["agent-rollout", "judge"] as const) {
      await trainer.manager.streams.purge(streamOf(user));
      const subject = user === "judge" ? subjects.rolloutScored("large") : subjects.rolloutFinished("large");
      await publishStored(busOf(user), subject, RolloutJobSchema, large());
      assert.ok((await messagesIn(trainer, streamOf(user))) > 0);
    }
    assert.equal(await purgeEpisodes(trainer, "large", 1_000), 2);
    assert.equal(await messagesIn(trainer, streamOf("agent-rollout")), 0);
    assert.equal(await messagesIn(trainer, streamOf("judge")), 0);
  });

  test("a writer drops the body of a message that the stream refused", async () => {
    const trainer = busOf("trainer");
    await trainer.manager.streams.purge(streamOf("trainer"));
    const { config } = await trainer.manager.streams.info(StreamName.jobs);
    await trainer.manager.streams.update(StreamName.jobs, { ...config, max_bytes: 1 });
    try {
      const publishing = publishStored(trainer, subjects.rolloutJob("r"), RolloutJobSchema, large(), {
        deadlineMs: 0,
      });
      await assert.rejects(publishing, /stream is at its limit/);
      await eventually("its parts to be gone", async () => {
        const { state } = await trainer.manager.streams.info(streamOf("trainer"));
        return state.messages === 1 && state.bytes < 1_000;
      });
    } finally {
      await trainer.manager.streams.update(StreamName.jobs, config);
    }
  });

  const open = (user: PayloadWriter): Promise<NatsConnection> => {
    const { username, password } = new URL(nats.urlOf(user));
    return connect({ servers: `127.0.0.1:${nats.port}`, user: username, pass: password, reconnect: false });
  };
});

describe("large payloads", { timeout: 180_000 }, () => {
  let nats: RunningNats;
  let bus: Bus;
  before(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "payloads", user: "judge" });
    await ensureTopology(bus);
  });
  after(async () => {
    await bus.close();
    await nats.stop();
  });

  const changed = (from: MsgHdrs, change: Readonly<Record<string, string>>): MsgHdrs => {
    const made = headers();
    for (const key of from.keys()) made.set(key, from.get(key));
    for (const [key, value] of Object.entries(change)) made.set(key, value);
    return made;
  };

  test("a message that names a bucket which is not for payloads is undecodable", async () => {
    const sent = await send(bus);
    const parts = `$O.PAYLOADS_judge.C.${sent.name}`;
    const part = await bus.manager.streams.getMessage("OBJ_PAYLOADS_judge", { last_by_subj: parts });
    await bus.objects.create("PAYLOADS_mine");
    await bus.stream.publish(parts.replace("_judge", "_mine"), part?.data ?? assert.fail());
    for (const store of ["PAYLOADS_mine", "PAYLOADS_judge.>", "KV_RUN_STATE", "x".repeat(1_000), "*"]) {
      const reading = read(bus, changed(sent.headers, { "hone-store": store }));
      await assert.rejects(
        reading,
        (error) => error instanceof UndecodableMessageError && /must be in one of/.test(error.message),
      );
    }
  });

  test("a message that describes its object wrongly is undecodable", async () => {
    const sent = await send(bus);
    const size = Number(sent.headers.get("hone-size"));
    for (const [change, reason] of [
      [{ "hone-object": "once.>" }, /a name that is not one of an object/],
      [{ "hone-object": "*.x" }, /a name that is not one of an object/],
      [{ "hone-object": "once.gone" }, /is gone/],
      [{ "hone-store": "PAYLOADS_tracer" }, /is gone/],
      [{ "hone-digest": "0".repeat(64) }, /has another digest/],
      [{ "hone-size": String(size + 1) }, /lacks some of its parts/],
      [{ "hone-size": String(size - 1) }, /has more than the/],
      [{ "hone-size": "1e15" }, /above 268435456/],
      [{ "hone-size": "-1" }, /claims to have -1 bytes/],
      [{ "hone-size": "many" }, /claims to have NaN bytes/],
    ] as const) {
      await assert.rejects(read(bus, changed(sent.headers, change)), (error: unknown) => {
        assert.ok(error instanceof UndecodableMessageError);
        assert.match(error.message, reason);
        return true;
      });
    }
    assert.deepEqual(await read(bus, sent.headers), sent.message);
  });

  test("an object with very small parts is not read to its end", async () => {
    const name = "once.small";
    for (let part = 0; part < 3; part++) await bus.stream.publish(`$O.PAYLOADS_judge.C.${name}`, "123");
    const pointer = headers();
    pointer.set("hone-store", "PAYLOADS_judge");
    pointer.set("hone-object", name);
    pointer.set("hone-size", "9");
    await assert.rejects(read(bus, pointer), /has a part of 3 bytes, below 1024/);
  });

  test("a message of an older release is read from the bucket of that release, and purged from it", async () => {
    const store = await bus.objects.create("PAYLOADS");
    const message = large("old");
    const data = toBinary(RolloutJobSchema, message);
    const subject = subjects.rolloutScored("old");
    const name = `${subject}/some id`;
    await store.putBlob({ name }, data);
    const pointer = headers();
    pointer.set("hone-object", name);
    pointer.set("hone-digest", createHash("sha256").update(data).digest("hex"));
    assert.deepEqual(await read(bus, pointer), message);
    await bus.stream.publish(subject, "", { headers: pointer });
    assert.equal(await purgeEpisodes(bus, "old", 1_000), 1);
    assert.equal(await messagesIn(bus, "OBJ_PAYLOADS"), 0);
    await assert.rejects(read(bus, pointer), /is gone/);
    await store.putBlob({ name }, data);
    await removeOldPayloads(bus, Date.now() + DAY_MS);
    assert.ok((await messagesIn(bus, "OBJ_PAYLOADS")) > 0, "an event may point to it");
    await removeOldPayloads(bus, Date.now() + 8 * DAY_MS);
    assert.equal(await messagesIn(bus, "OBJ_PAYLOADS"), 0);
  });

  test("objects are removed once nobody can need them, and not earlier", async () => {
    const stream = "OBJ_PAYLOADS_judge";
    await bus.manager.streams.purge(stream);
    await bus.manager.streams.purge(StreamName.episodes);
    const once = await send(bus, BodyKind.once);
    const kept = await send(bus, BodyKind.kept);
    const lost = await send(bus, BodyKind.episode);
    await publishStored(bus, subjects.rolloutJob("waits"), RolloutJobSchema, large());
    const job = await bus.manager.streams.getMessage(StreamName.jobs, {
      last_by_subj: "hone.v1.rollout.job.waits",
    });
    const isThere = (pointer: MsgHdrs) =>
      read(bus, pointer).then(
        () => true,
        () => false,
      );
    const there = () =>
      Promise.all([once.headers, kept.headers, lost.headers, job?.header ?? assert.fail()].map(isThere));
    const removeIn = (ms: number) => removeOldPayloads(bus, Date.now() + ms);
    assert.equal(await removeIn(MIN_AGE_MS / 2), 0);
    assert.equal(await removeIn(2 * MIN_AGE_MS), 2);
    assert.deepEqual(await there(), [false, true, false, true]);
    assert.equal(await removeIn(EVENTS_MAX_AGE_MS), 0);
    assert.equal(await removeIn(EVENTS_MAX_AGE_MS + 2 * MIN_AGE_MS), 1);
    assert.deepEqual(await there(), [false, false, false, true]);
    await bus.manager.streams.purge(StreamName.jobs);
    assert.equal(await removeIn(2 * MIN_AGE_MS), 1);
    assert.equal(await messagesIn(bus, stream), 0);
  });

  test("bodyKindOf() derives from the subject how long the body of a message is needed", () => {
    assert.equal(bodyKindOf(subjects.rolloutJob("r")), BodyKind.job);
    assert.equal(bodyKindOf(subjects.rolloutFinished("r")), BodyKind.episode);
    assert.equal(bodyKindOf(subjects.rolloutScored("r")), BodyKind.episode);
    assert.equal(bodyKindOf(subjects.event("r", "accepted")), BodyKind.kept);
    assert.equal(bodyKindOf(subjects.runRequest()), BodyKind.kept);
  });

  test("the error of a full bucket has its name, its size and what to do, and a writer waits until there is space", async () => {
    const stream = "OBJ_PAYLOADS_judge";
    await bus.manager.streams.purge(stream);
    const { config } = await bus.manager.streams.info(stream);
    assert.equal(config.max_bytes, 2 * 1024 ** 3);
    await bus.manager.streams.update(stream, { ...config, max_bytes: 3 * 1024 ** 2 });
    const subject = subjects.rolloutScored("full");
    const publish = (deadlineMs: number) =>
      publishStored(bus, subject, RolloutJobSchema, large(), { deadlineMs });
    await publish(1_000);
    const held = (await bus.manager.streams.info(stream)).state.bytes;
    await assert.rejects(publish(100), (error: unknown) => {
      assert.ok(error instanceof PayloadStoreFullError);
      assert.match(
        error.message,
        /1\.91 MiB: the bucket PAYLOADS_judge is full \(it takes 3 MiB\): wait until/,
      );
      return true;
    });
    await eventually("its stored parts to be dropped", async () => {
      return (await bus.manager.streams.info(stream)).state.bytes - held < 1_000;
    });
    const waiting = publish(60_000);
    await purgeEpisodes(bus, "full", 1_000_000);
    await waiting;
    await bus.manager.streams.update(stream, config);
  });
});

/** The errors that the server reports to a connection until it ends. */
async function errorsOf(connection: NatsConnection): Promise<string[]> {
  const errors: string[] = [];
  for await (const status of connection.status()) {
    if (status.type === "error") errors.push(status.error.message);
  }
  return errors;
}
