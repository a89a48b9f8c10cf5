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
  test("runs once what is not named, and not at all what is left out", () => {
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

  test("refuses what is no service, with the nearest one", () => {
    refused("agent-rolout=2", /--replicas must name one of tracer, .* did you mean agent-rollout\?/);
    refused("postgres=2", /must name one of .*: current value is "postgres"/);
    refused("=2", /must name one of .*: current value is ""/);
  });

  test("refuses what is no count, or none that makes sense", () => {
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
      refused(text, /SERVICE=COUNT with a count of 1 to 16 \(--without/);
    }
    refused("judge=2,judge=3", /names each service once/);
    refused("judge=2", /--without leaves out/, ["judge"]);
    refused("tracer=2", /only be 1 for the tracer/);
  });
});

test("requireSingle() refuses several of a service, by name", () => {
  requireSingle(parseReplicas("judge=1", "--replicas", ["trainer"]));
  assert.throws(
    () => requireSingle(parseReplicas("judge=2", "--replicas")),
    /--in-process runs each service once: current value is \(2 judge\)$/,
  );
});

describe("isReplicas()", () => {
  test("takes what was parsed, and no count that a stack cannot have", () => {
    const counts = parseReplicas("judge=2", "--replicas", ["tracer"]);
    assert.ok(isReplicas(JSON.parse(JSON.stringify(counts))));
    for (const judge of [17, -1, 1.5, "2", null, undefined]) assert.ok(!isReplicas({ ...counts, judge }));
    for (const value of [null, undefined, 3, [], {}]) assert.ok(!isReplicas(value));
  });
});
