/**
 * Renders and runs the chart's profile `cpu`: each of Hone's containers is a process here, with the command, variables, files,
 * ports and probes of its manifest. `npm run test:chart`.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { deadline } from "@hone/core";
import { logTail } from "@hone/embedded";
import type { Bus } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { lakeRun } from "../support/index.ts";
import {
  connectClient,
  endOf,
  publishAndFollow,
  RUN_DEADLINE_MS,
  stepsOf,
  trainedBy,
} from "./cluster/follow-run.ts";
import { type LocalCluster, startLocalCluster } from "./cluster/local-cluster.ts";
import { Pod } from "./cluster/pod.ts";
import { findHelm, render } from "./helm.ts";

const STEPS = 9;
/** Components whose pods are killed, one at a time. */
const VICTIMS = [
  "dataset",
  "agent-rollout",
  "inference-gateway",
  "judge",
  "tracer",
  "trainer",
  "nats",
  "postgres",
] as const;

const helm = await findHelm();
const skip = helm.kind === "missing" ? helm.why : false;

describe("the rendered chart", { skip, timeout: 3_000_000 }, () => {
  let cluster: LocalCluster;
  let bus: Bus;

  before(async () => {
    assert.ok(helm.kind === "found");
    cluster = await startLocalCluster(await render(helm.program, { profile: "cpu" }));
    bus = await connectClient(cluster);
  });
  after(async () => {
    await bus?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  test("each service becomes ready by its probes, and serves its port", async () => {
    for (const component of ["dataset", "agent-rollout", "inference-gateway", "judge", "trainer", "tracer"]) {
      const answer = await fetch(`http://${cluster.addressOf(component)}:8080/readyz`);
      assert.equal(answer.status, 200, component);
      assert.equal(((await answer.json()) as { service: string }).service, component);
    }
  });

  test("`helm test` finds all services ready, and publishes a run that completes", async () => {
    for (const container of ["services", "run"]) {
      const pod = cluster.hookPod("test", container);
      const exit = await deadline("helm test", RUN_DEADLINE_MS, () => pod.runOnce());
      assert.deepEqual(exit, { code: 0, signal: null }, `${logTail(pod.logFile, 20)}\n${cluster.describe()}`);
    }
  });

  test("a run that is published as NOTES says completes, and Jaeger receives its traces", async () => {
    const run = await lakeRun(undisturbed);
    const events = await publishAndFollow(cluster, bus, JSON.stringify(run));
    assert.equal(endOf(events)?.phase, RunPhase.COMPLETED, endOf(events)?.reason);

    const services = ["agent-rollout", "inference-gateway", "judge", "trainer"];
    const wholeTraces = () => {
      const byTrace = Map.groupBy(cluster.jaeger.spans, ({ traceId }) => traceId);
      return [...byTrace.values()].filter((spans) =>
        services.every((name) => spans.some((s) => s.service === name)),
      );
    };
    await eventually("a rollout's whole trace", () => wholeTraces().length > 0, { deadlineMs: 60_000 });
    const [trace = []] = wholeTraces();
    const named = (begin: string) => trace.find(({ name }) => name === begin || name.startsWith(`${begin} `));
    // Attributes by which Jaeger's page shows models, tokens and agents.
    assert.equal(named("chat")?.attributes["gen_ai.operation.name"], "chat");
    assert.ok(Number(named("chat")?.attributes["gen_ai.usage.output_tokens"]) > 0);
    assert.equal(named("invoke_agent")?.attributes["gen_ai.operation.name"], "invoke_agent");
    assert.equal(named("judge")?.attributes["messaging.system"], "nats");
    // Attributes that the chart's link patterns to Hone's page use.
    const rollout = named("rollout");
    assert.ok(rollout?.attributes["hone.run.id"] && rollout.attributes["hone.slot"], JSON.stringify(rollout));
    await eventually("a step with its links", () => ofSteps(cluster).some(({ numLinks }) => numLinks > 0));
  });

  test("the bus refused no request of a service", () => {
    assert.deepEqual(violations(cluster), []);
  });

  test("a service's password gives no rights that the service does not need", async () => {
    const open = (user: string) =>
      connect({
        servers: `${cluster.addressOf("nats")}:4222`,
        user,
        pass: cluster.secret("hone-nats-users", user),
        reconnect: false,
      });
    const forbidden: [string, (connection: NatsConnection) => void, RegExp][] = [
      ["judge", (c) => c.publish("hone.v1.run.request", "x"), /hone\.v1\.run\.request/],
      ["agent-rollout", (c) => c.publish("hone.v1.rollout.scored.r", "x"), /rollout\.scored/],
      ["agent-rollout", (c) => c.publish("$JS.API.STREAM.PURGE.EPISODES", "x"), /PURGE\.EPISODES/],
      ["dataset", (c) => c.publish("$JS.API.STREAM.DELETE.RUNS", "x"), /DELETE\.RUNS/],
      ["client", (c) => c.publish("$KV.RUN_STATE.r", "x"), /KV\.RUN_STATE/],
    ];
    for (const [user, act, subject] of forbidden) {
      const connection = await open(user);
      const refused = (async () => {
        for await (const status of connection.status()) {
          if (status.type === "error") return status.error.message;
        }
        return "";
      })();
      act(connection);
      await connection.flush();
      assert.match(await deadline(`the refusal of ${user}`, 10_000, () => refused), subject);
      await connection.close();
    }
    const listener = await open("judge");
    const heard = listener.subscribe("_INBOX_trainer.>");
    await assert.rejects(async () => {
      for await (const _ of heard) break;
    }, /permission/i);
    await listener.close();
    await assert.rejects(
      connect({ servers: `${cluster.addressOf("nats")}:4222`, reconnect: false }),
      /authorization/i,
    );
  });

  test("a run loses nothing when pods are killed one at a time and replaced", async () => {
    const run = await lakeRun({ ...undisturbed, name: "disturbed" });
    const left = [...VICTIMS];
    const events = await publishAndFollow(cluster, bus, JSON.stringify(run), async (event) => {
      if (event.kind.case !== "stepCompleted") return;
      const victim = left.shift();
      if (victim !== undefined) await cluster.replace(victim);
    });
    assert.deepEqual(left, [], "every component was killed");
    assert.equal(endOf(events)?.phase, RunPhase.COMPLETED, endOf(events)?.reason);
    assert.deepEqual(
      stepsOf(events),
      Array.from({ length: STEPS }, (_, i) => i + 1),
    );

    const kept = await trainedBy(cluster, "disturbed");
    const { tasksPerStep, warmStartTasks } = undisturbed;
    assert.equal(kept.rollouts.length, warmStartTasks + STEPS * tasksPerStep * run.rollout.groupSize);
    assert.deepEqual(
      kept,
      await trainedBy(cluster, "undisturbed"),
      "the same rollouts, each once, and the same bits",
    );
  });

  test("no liveness probe would have killed a pod", () => {
    const dead = [...cluster.pods.values()].filter(
      (pod) => pod instanceof Pod && pod.livenessDeaths.length > 0,
    );
    assert.deepEqual(dead, []);
  });
});

const undisturbed = {
  name: "undisturbed",
  steps: STEPS,
  tasksPerStep: 2,
  minibatches: 1,
  warmStartTasks: 24,
  evalTasks: 2,
};

/** The refusals of the bus in its log. */
function violations(cluster: LocalCluster): string[] {
  const { logFile } = cluster.pods.get("nats") as Pod;
  const lines = readFileSync(logFile, "utf8").split("\n");
  return lines.filter((line) => /Violation/i.test(line)).map((line) => line.replace(/^.*?\[ERR\]/, ""));
}

function ofSteps(cluster: LocalCluster) {
  return cluster.jaeger.spans.filter(({ name }) => name === "step");
}
