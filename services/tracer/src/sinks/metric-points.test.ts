import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { findPython, runPython, skipWithout } from "../testing/python.ts";
import { sampleMetrics } from "../testing/sample-run.ts";
import table from "./metric-names.json" with { type: "json" };
import { pointsOf } from "./metric-points.ts";

const python = findPython("json");
/** Names as an agent or a judge may give them. */
const ODD = [
  "../x",
  "a//b",
  "",
  "/",
  ".",
  "é",
  "🙂 x",
  "judge/a b/é",
  "pass@4",
  "x".repeat(500),
  "time/_ms",
  "time/a_ms",
];
const metrics: Record<string, number> = {
  ...sampleMetrics(3),
  ...Object.fromEntries(ODD.map((name, at) => [name, at + 0.5])),
  "reward/max": Number.POSITIVE_INFINITY,
};
const base = { runId: "lake-1", sequence: 1, timeMs: 1 };
const finite = Object.fromEntries(
  Object.entries(metrics).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
);
const step = pointsOf({
  ...base,
  kind: "step_completed",
  step: 3,
  totalSteps: 9,
  version: 3,
  metrics: finite,
});
const evaluation = pointsOf({
  ...base,
  kind: "evaluated",
  version: 3,
  mode: "gr/eedy",
  episodes: 1,
  metrics: finite,
});

describe("pointsOf()", () => {
  test("gives verl's names, times in seconds, and groups to names without one", () => {
    const values = new Map(step?.values);
    assert.equal(values.get("critic/rewards/mean"), metrics["reward/mean"]);
    assert.equal(values.get("timing_s/gen"), (metrics["time/rollout_ms"] ?? 0) / 1_000);
    assert.equal(values.get("env/success"), metrics.success);
    assert.equal(values.get("groups/used"), metrics["groups/used"]);
  });

  test("gives names that every system takes, whatever agents and judges call their figures", () => {
    for (const [name, value] of [...(step?.values ?? []), ...(evaluation?.values ?? [])]) {
      assert.match(name, /^(?!\.*(\/|$))[\w.-]+(\/(?!\.*(\/|$))[\w.-]+)*$/);
      assert.ok(name.length <= 250 && Number.isFinite(value), name);
    }
  });

  test("leaves out all facts but steps and evaluations", () => {
    assert.equal(pointsOf({ ...base, kind: "step_begun", step: 1 }), undefined);
  });

  test("gives what the program in Python gives", { skip: skipWithout(python, "anything") }, () => {
    const program = `
import json, sys
from hone_sinks.points import evaluation_points, step_points
metrics = {name: float("inf") if value is None else value for name, value in json.loads(sys.argv[1]).items()}
both = step_points(3, metrics), evaluation_points(3, "gr/eedy", metrics)
print(json.dumps([[each.series, each.step, list(each.values.items())] for each in both]))`;
    const environment = {
      PYTHONPATH: path.join(import.meta.dirname, "../../python"),
      PYTHONDONTWRITEBYTECODE: "1",
    };
    const found = runPython(python ?? "", program, [JSON.stringify(finite)], environment);
    const own = [step, evaluation].map((each) => [each?.series, each?.step, each?.values]);
    assert.deepEqual(found, JSON.parse(JSON.stringify(own)));
  });

  test("every name of the table is on the page", async () => {
    const page = await readFile(path.join(import.meta.dirname, "../../../../docs/observability.md"), "utf8");
    for (const [name, shown] of Object.entries(table.names))
      assert.ok(page.includes(`| \`${name}\` | \`${shown}\` |`), name);
  });
});
