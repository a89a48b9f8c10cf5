/**
 * `helm upgrade` in the middle of a run: every pod is replaced as in a rolling update, the passwords are kept, and the run
 * ends as an undisturbed run does. `npm run test:chart`.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { lakeRun } from "../support/index.ts";
import { ApiServer } from "./cluster/api-server.ts";
import {
  connectClient,
  endOf,
  publishAndFollow,
  SHORT_STEPS,
  stepsOf,
  trainedBy,
} from "./cluster/follow-run.ts";
import { type LocalCluster, startLocalCluster } from "./cluster/local-cluster.ts";
import type { SeenSpan } from "./cluster/stand-ins.ts";
import { findHelm, type Manifest, render } from "./helm.ts";

/** So many steps that the run is still active after both upgrades. */
const STEPS = 60;
const RUN = { name: "undisturbed", steps: STEPS, ...SHORT_STEPS };
/** Values of another release of Hone, which logs more and sends its spans elsewhere. */
const SERVICES_CHANGE = ["image.tag=0.1.1", "logLevel=debug", "telemetry.route=straight"];
const SERVICES = ["agent-rollout", "dataset", "inference-gateway", "judge", "tracer", "trainer"];
/** Values that then upgrade the servers, separately as docs/cluster.md says. */
const SERVERS_CHANGE = [...SERVICES_CHANGE, "nats.maxPayload=2MB", "postgres.maxConnections=120"];
/** The spans of every trace of a rollout. */
const ROLLOUT_SPANS = ["rollout", "invoke_agent", "chat", "engine.decode", "judge", "train"];
/** Values that sample half of the traces. */
const SAMPLING_CHANGE = [...SERVERS_CHANGE, "telemetry.sampleRatio=0.5"];

const helm = await findHelm();
const skip = helm.kind === "missing" ? helm.why : false;

describe("helm upgrade", { skip, timeout: 3_000_000 }, () => {
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

  /** Renders the chart as an upgrade and rolls it out. @returns how the replaced pods ended. */
  async function upgrade(set: readonly string[]) {
    assert.ok(helm.kind === "found");
    await using api = await ApiServer.start(cluster.manifests);
    const next = await render(helm.program, { profile: "cpu", set, apiServer: api.url });
    assert.deepEqual(secretsOf(next), secretsOf(cluster.manifests), "an upgrade keeps the passwords");
    return await cluster.upgrade(next);
  }

  test("of services, and then of the servers, in the middle of a run loses nothing", async () => {
    const undisturbed = await publishAndFollow(cluster, bus, JSON.stringify(await lakeRun(RUN)));
    assert.equal(endOf(undisturbed)?.phase, RunPhase.COMPLETED, endOf(undisturbed)?.reason);

    const ends = new Map<string, unknown>();
    let upgradedAt = Number.POSITIVE_INFINITY;
    const left: [number, readonly string[]][] = [
      [2, SERVICES_CHANGE],
      [5, SERVERS_CHANGE],
    ];
    const run = await lakeRun({ ...RUN, name: "upgraded" });
    const events = await publishAndFollow(cluster, bus, JSON.stringify(run), async ({ kind }) => {
      const [atStep, change] = left[0] ?? [];
      if (kind.case !== "stepCompleted" || change === undefined || Number(kind.value.step) !== atStep) return;
      left.shift();
      for (const [component, exit] of await upgrade(change)) ends.set(component, exit);
      upgradedAt = Date.now();
    });
    assert.deepEqual(left, [], "both upgrades were done");
    const after = events.filter(
      ({ kind, timeMs }) => kind.case === "stepCompleted" && Number(timeMs) > upgradedAt,
    );
    assert.ok(after.length > 0, "in mid-run");
    assert.equal(endOf(events)?.phase, RunPhase.COMPLETED, endOf(events)?.reason);
    assert.deepEqual(
      stepsOf(events),
      Array.from({ length: STEPS }, (_, i) => i + 1),
    );
    assert.deepEqual([...ends.keys()].sort(), [...SERVICES, "nats", "postgres"].sort());
    // Each ended by itself within its grace period: with code 0 and without a signal.
    for (const [component, exit] of ends) assert.deepEqual(exit, { code: 0, signal: null }, component);
    assert.deepEqual(
      await trainedBy(cluster, "upgraded"),
      await trainedBy(cluster, "undisturbed"),
      "the same rollouts, each once, and the same bits",
    );
  });

  test("to sampled spans that go directly to Jaeger keeps traces of rollouts whole or not at all", async () => {
    await upgrade(SAMPLING_CHANGE);
    const run = await lakeRun({ ...RUN, name: "sampled", steps: 3 });
    const events = await publishAndFollow(cluster, bus, JSON.stringify(run));
    assert.equal(endOf(events)?.phase, RunPhase.COMPLETED, endOf(events)?.reason);
    const spansByTrace = await eventually(
      "the spans of the last rollouts",
      () => {
        const traces = tracesOf(cluster.jaeger.spans);
        const last = [...traces.values()].filter((spans) =>
          spans.some((span) => isTrained(span, "sampled-", 3)),
        );
        // Services send their spans at different times.
        const isSent = last.every((spans) => ROLLOUT_SPANS.every((name) => spans.some(isNamed(name))));
        return last.length > 0 && isSent && traces;
      },
      { deadlineMs: 60_000 },
    );
    const rollouts = [...spansByTrace.values()].filter((spans) =>
      spans.some((span) => isTrained(span, "sampled-", 1)),
    );
    const made = 3 * RUN.tasksPerStep * run.rollout.groupSize;
    assert.ok(rollouts.length > 0 && rollouts.length < made, `${rollouts.length} of ${made}`);
    for (const spans of rollouts) {
      for (const name of ROLLOUT_SPANS) {
        assert.ok(spans.some(isNamed(name)), `${name} among ${spans.map((span) => span.name).join(", ")}`);
      }
    }
    // No service made a span below a root that was not sampled. A root ends after its spans, and that of an evaluation last of all.
    await eventually(
      "the root of every trace",
      () => {
        const partial = [...tracesOf(cluster.jaeger.spans).values()].filter(
          (spans) =>
            spans.some((span) => span.attributes["hone.run.id"]?.startsWith("sampled-") && !isOfStep(span)) &&
            !spans.some((span) => span.name === "rollout"),
        );
        assert.deepEqual(
          partial.map((spans) => spans.map(({ name }) => name)),
          [],
        );
        return true;
      },
      { deadlineMs: 60_000 },
    );
  });
});

/** The texts of each Secret, by its name. */
function secretsOf(manifests: readonly Manifest[]): Record<string, Record<string, string>> {
  const secrets = manifests.filter(({ kind }) => kind === "Secret");
  return Object.fromEntries(secrets.map(({ metadata, stringData }) => [metadata.name, stringData]));
}

function isNamed(name: string) {
  return (span: SeenSpan) => span.name === name || span.name.startsWith(`${name} `);
}

function tracesOf(spans: readonly SeenSpan[]): Map<string, SeenSpan[]> {
  return Map.groupBy(spans, ({ traceId }) => traceId);
}

/** Whether a span is the `train` span of a rollout of this run, in this step or a later one. */
function isTrained({ name, attributes }: SeenSpan, runBegin: string, fromStep: number): boolean {
  const isOfRun = attributes["hone.run.id"]?.startsWith(runBegin) === true;
  return name === "train" && isOfRun && Number(attributes["hone.step"]) >= fromStep;
}

function isOfStep({ name }: SeenSpan): boolean {
  return ["step", "warm_start", "evaluate", "replay"].some((each) => name.startsWith(each));
}
