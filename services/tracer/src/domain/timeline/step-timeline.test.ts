import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SpanTime } from "./span-times.ts";
import { BINS, stepTimeline } from "./step-timeline.ts";

/** A step of 2.4 s that ended at 102,400. */
const STEP = {
  step: 7,
  version: 7,
  timeMs: 102_400,
  metrics: {
    "time/step_ms": 2_400,
    "time/rollout_ms": 1_200,
    "time/score_ms": 100,
    "time/train_ms": 900,
    "time/commit_ms": 200,
    "time/publish_ms": 60,
  },
};

const span = (name: string, from: number, to: number, instance = "a"): SpanTime => ({
  name,
  instance,
  fromMs: 100_000 + from,
  toMs: 100_000 + to,
});

describe("stepTimeline()", () => {
  test("shows the phases of the trainer one after the other", () => {
    const timeline = stepTimeline(STEP, []);
    assert.equal(timeline?.beganAtMs, 100_000);
    assert.deepEqual(timeline?.phases, [
      { name: "wait", fromMs: 0, toMs: 1_200 },
      { name: "score", fromMs: 1_200, toMs: 1_300 },
      { name: "train", fromMs: 1_300, toMs: 2_100 },
      { name: "commit", fromMs: 2_100, toMs: 2_300 },
      { name: "publish", fromMs: 2_300, toMs: 2_360 },
    ]);
    assert.deepEqual(timeline?.lanes, []);
  });

  test("counts what is at work at once, in each part of the step and in all", () => {
    const spans = [
      span("engine.prefill", 0, 600),
      span("engine.decode", 600, 1_200),
      span("engine.decode", 300, 900),
      span("engine.queue", 0, 2_400),
      span("chat run-1", 0, 2_400),
    ];
    const [engine, ...others] = stepTimeline(STEP, spans)?.lanes ?? [];
    assert.deepEqual(others, []);
    assert.ok(engine !== undefined);
    assert.deepEqual([engine.kind, engine.name, engine.busyShare, engine.most], ["engine", "a", 0.5, 2]);
    assert.equal(engine.counts.length, BINS);
    assert.deepEqual(
      [0, 29, 30, 89, 90, 119, 120].map((bin) => engine.counts[bin]),
      [1, 1, 2, 2, 1, 1, 0],
    );
  });

  test("cuts off what began before the step or ended after it, and leaves out the rest", () => {
    const spans = [
      span("invoke_agent lake", -5_000, 240),
      span("invoke_agent lake", 2_160, 9_000),
      span("invoke_agent lake", -900, -100),
      span("invoke_agent lake", 2_400, 2_500),
    ];
    const [agents] = stepTimeline(STEP, spans)?.lanes ?? [];
    assert.ok(agents !== undefined);
    assert.ok(Math.abs(agents.busyShare - 0.2) < 1e-9);
    assert.equal(agents.most, 1);
  });

  test("has one lane for each replica, then agents, tools and environments, and the judge", () => {
    const spans = [
      span("judge", 0, 1),
      span("environment.step", 0, 1),
      span("execute_tool python", 0, 1),
      span("invoke_agent lake", 0, 1),
      span("engine.decode", 0, 1, "b"),
      span("engine.decode", 0, 1, "a"),
    ];
    const lanes = stepTimeline(STEP, spans)?.lanes.map(({ kind, name, most }) => [kind, name, most]);
    assert.deepEqual(lanes, [
      ["engine", "a", 1],
      ["engine", "b", 1],
      ["agents", "", 1],
      ["tools", "", 2],
      ["judge", "", 1],
    ]);
  });

  test("is undefined for a step whose times are not known", () => {
    assert.equal(stepTimeline({ ...STEP, metrics: { loss: 1 } }, []), undefined);
  });
});
