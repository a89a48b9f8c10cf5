import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { factOf } from "./run-event.ts";

const event = (kind: Parameters<typeof create<typeof RunEventSchema>>[1]) =>
  create(RunEventSchema, { runId: "lake-1", timeMs: 5n, ...kind });

describe("factOf()", () => {
  test("keeps finite metrics and makes the others null, as JSON cannot hold them", () => {
    const fact = factOf(
      event({
        kind: {
          case: "stepCompleted",
          value: {
            step: 2,
            totalSteps: 9,
            version: 2,
            metrics: { loss: Number.NaN, success: 0.5, "ratio/max": Number.POSITIVE_INFINITY },
          },
        },
      }),
      7,
    );
    assert.deepEqual(fact, {
      runId: "lake-1",
      sequence: 7,
      timeMs: 5,
      kind: "step_completed",
      step: 2,
      totalSteps: 9,
      version: 2,
      metrics: { loss: null, success: 0.5, "ratio/max": null },
    });
  });

  test("has a loss of null before the first update of a warm start", () => {
    const fact = factOf(
      event({
        kind: { case: "warmStartProgress", value: { rolloutsDone: 3, rolloutsTotal: 8, loss: Number.NaN } },
      }),
      1,
    );
    assert.ok(fact?.kind === "progress" && fact.progress.kind === "warm_start");
    assert.equal(fact.progress.loss, null);
  });

  test("replaces the character that PostgreSQL cannot store in a text", () => {
    const fact = factOf(
      event({ kind: { case: "ended", value: { phase: RunPhase.FAILED, reason: "a\0b" } } }),
      1,
    );
    assert.ok(fact?.kind === "ended");
    assert.equal(fact.reason, "a\uFFFDb");
    assert.equal(fact.phase, "failed");
  });

  test("says that a run was resumed, and to which resumption an end belongs", () => {
    const resumed = factOf(event({ kind: { case: "resumed", value: { resumption: 2 } } }), 1);
    assert.ok(resumed?.kind === "resumed" && resumed.resumption === 2);
    const ended = factOf(
      event({ kind: { case: "ended", value: { phase: RunPhase.FAILED, resumption: 2 } } }),
      1,
    );
    assert.ok(ended?.kind === "ended" && ended.resumption === 2);
  });

  test("gives no fact for an event of an unknown kind", () => {
    assert.equal(factOf(event({}), 1), undefined);
  });
});
