/** A bus of three servers with the chart's configuration: streams have three replicas, and one server may fail. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { findNatsServer } from "@hone/embedded";
import {
  type Bus,
  connectBus,
  ensureTopology,
  payloadWriterOf,
  publishBytes,
  request,
  respond,
  StreamName,
  StreamsRole,
  subjects,
} from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { eventually, temporaryFolder } from "@hone/testing";
import { planPods } from "./cluster/hosts.ts";
import { find } from "./cluster/mounts.ts";
import { Pod } from "./cluster/pod.ts";
import { findHelm, render } from "./helm.ts";

const DEADLINE_MS = 120_000;
const helm = await findHelm();
const skip = helm.kind === "missing" ? helm.why : false;

describe("a bus of three servers", { skip, timeout: 600_000 }, () => {
  test("holds three replicas of each stream, and works on when one server is lost", async () => {
    assert.ok(helm.kind === "found");
    const manifests = await render(helm.program, {
      profile: "cpu",
      set: ["nats.replicas=3", "nats.streamReplicas=3"],
    });
    const plans = planPods(manifests).filter(({ component }) => component === "nats");
    await using folder = await temporaryFolder("bus");
    const hostsFile = path.join(folder.path, "hosts.json");
    mkdirSync(path.join(folder.path, "logs"), { recursive: true });
    writeFileSync(hostsFile, "{}");
    const { path: server } = await findNatsServer({ fallbackCacheDir: folder.path });
    // Servers do not use this test's DNS, so the routes of the configuration are given as addresses.
    const routes = plans.map(({ address }) => `nats://${address}:6222`).join(",");
    const extraArgs = ["--addr", "{address}", "--cluster", "nats://{address}:6222", "--routes", routes];
    const pods = plans.map(
      (plan) =>
        new Pod(plan, {
          manifests,
          folder: folder.path,
          image: [],
          hostsFile,
          programs: { "nats-server": { path: server, extraArgs } },
        }),
    );
    assert.equal(pods.length, 3);
    /** @param servers its clients are sent to. */
    const open = (user: string, servers = plans): Promise<Bus> => {
      const password = find(manifests, "Secret", "hone-nats-users").stringData[user];
      const hosts = servers.map(({ address }) => `${address}:4222`);
      const url = `nats://${user}:${password}@${hosts.join(",")}`;
      return connectBus({
        url,
        name: user,
        user: payloadWriterOf(user),
        ...(user === "client" ? {} : { inboxPrefix: `_INBOX_${user}` }),
      });
    };
    let trainer: Bus | undefined;
    let judge: Bus | undefined;
    try {
      await Promise.all(pods.map((pod) => pod.start()));
      await Promise.all(pods.map((pod) => pod.untilReady()));
      trainer = await open("trainer");
      judge = await open("judge");
      const waiting = ensureTopology(judge, { role: StreamsRole.await, awaitDeadlineMs: DEADLINE_MS });
      await ensureTopology(trainer, { replicas: 3 });
      await waiting;
      for (const name of [
        ...Object.values(StreamName),
        "KV_RUN_STATE",
        "KV_REPLICAS",
        "OBJ_PAYLOADS_judge",
      ]) {
        const { config, cluster } = await trainer.manager.streams.info(name);
        assert.equal(config.num_replicas, 3, name);
        assert.equal(cluster?.replicas?.length, 2, name);
      }
      // A request and its reply cross accounts and servers.
      const [here, there] = await Promise.all([
        open("agent-rollout", plans.slice(0, 1)),
        open("dataset", plans.slice(1, 2)),
      ]);
      const responder = respond(there, subjects.datasetBatch(), BatchRequestSchema, BatchReplySchema, {
        handle: ({ reply }) => reply(create(BatchReplySchema)),
        onError: (error) => assert.fail(String(error)),
      });
      await eventually("a reply from another server's client", () =>
        request(
          here,
          subjects.datasetBatch(),
          BatchRequestSchema,
          create(BatchRequestSchema),
          BatchReplySchema,
          { timeoutMs: 5_000 },
        ).then(
          () => true,
          () => false,
        ),
      );
      await responder.drain();
      await Promise.all([here.close(), there.close()]);

      const store = (bus: Bus, text: string) =>
        publishBytes(bus, subjects.rolloutScored("r"), text, undefined);
      await store(judge, "before");

      const leader = (await trainer.manager.streams.info(StreamName.episodes)).cluster?.leader;
      const lost = pods.find(({ plan }) => plan.name === leader);
      assert.ok(lost !== undefined, `the leader ${leader} is none of the pods`);
      await lost.kill();
      const bus = judge;
      await eventually(
        "a message to be stored without the leader",
        () =>
          store(bus, "without").then(
            () => true,
            () => false,
          ),
        {
          deadlineMs: DEADLINE_MS,
        },
      );
      await lost.start();
      await lost.untilReady();
      const readers = trainer;
      await eventually(
        "the lost server to have its replicas again",
        async () => {
          const { cluster } = await readers.manager.streams.info(StreamName.episodes);
          return (
            (cluster?.replicas ?? []).length === 2 &&
            (cluster?.replicas ?? []).every(({ current }) => current)
          );
        },
        { deadlineMs: DEADLINE_MS },
      );
      const { state } = await trainer.manager.streams.info(StreamName.episodes);
      assert.ok(state.messages >= 2, `${state.messages} messages`);
    } finally {
      await trainer?.close();
      await judge?.close();
      await Promise.all(pods.map((pod) => pod.stop()));
    }
  });
});
