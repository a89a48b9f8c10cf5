import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { UsageError } from "../errors.ts";
import { describeReplicas, isReplicas, parseReplicas, replicasOf, requireSingle } from "./replicas.ts";
import { SERVICES } from "./services.ts";

const refused = (text: string, message: RegExp, without: Parameters<typeof parseReplicas>[2] = []) =>
  assert.throws(
    () => parseReplicas(text, "--replicas", without),
    (error) => error instanceof UsageError && message.test(error.message),
    text,
  );

describe("parseReplicas()", () => {
  test("runs services once that are not named, and not those that --without leaves out", () => {
    assert.deepEqual(
      replicasOf(parseReplicas("", "--replicas")).map(({ name }) => name),
      [...SERVICES],
    );
    const counts = parseReplicas("trainer=1, agent-rollout=3,tracer=1", "--replicas", ["judge"]);
    assert.deepEqual(
      replicasOf(counts).map(({ name }) => name),
      [
        "tracer",
        "dataset",
        "inference-gateway",
        "agent-rollout",
        "agent-rollout-1",
        "agent-rollout-2",
        "trainer",
      ],
    );
    assert.deepEqual(
      replicasOf(counts)
        .filter(({ service }) => service === "agent-rollout")
        .map(({ index }) => index),
      [0, 1, 2],
    );
    assert.equal(describeReplicas(counts), " (3 agent-rollout)");
    assert.equal(describeReplicas(parseReplicas("", "--replicas")), "");
  });

  test("refuses an unknown service, and suggests the nearest one", () => {
    refused(
      "agent-rolout=2",
      /there is no service "agent-rolout" for --replicas; the services are tracer, .* did you mean agent-rollout\?/,
    );
    refused("postgres=2", /there is no service "postgres" .*; the services are /);
    refused("=2", /there is no service "" .*; the services are /);
  });

  test("refuses counts that are no numbers or not possible", () => {
    for (const text of [
      "judge",
      "judge=",
      "judge=0",
      "judge=-1",
      "judge=2.5",
      "judge=2=3",
      "judge=17",
      "judge=0x2",
    ]) {
      refused(text, /SERVICE=COUNT with a count of 1 to 16; to leave a service out, use --without/);
    }
    refused("judge=2,judge=3", /--replicas names judge more than once: judge=2,judge=3/);
    refused("judge=2", /judge=2 in --replicas contradicts --without, which leaves judge out/, ["judge"]);
    refused("tracer=2", /tracer=2 in --replicas is not possible: there can be only one tracer/);
  });
});

test("requireSingle() names the services with several processes", () => {
  requireSingle(parseReplicas("judge=1", "--replicas", ["trainer"]));
  assert.throws(
    () => requireSingle(parseReplicas("judge=2", "--replicas")),
    /--in-process runs each service once, .* with several processes \(2 judge\)$/,
  );
});

describe("isReplicas()", () => {
  test("accepts parsed counts, and refuses impossible ones", () => {
    const counts = parseReplicas("judge=2", "--replicas", ["tracer"]);
    assert.ok(isReplicas(JSON.parse(JSON.stringify(counts))));
    for (const judge of [17, -1, 1.5, "2", null, undefined]) assert.ok(!isReplicas({ ...counts, judge }));
    for (const value of [null, undefined, 3, [], {}]) assert.ok(!isReplicas(value));
  });
});
