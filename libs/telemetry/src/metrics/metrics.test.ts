import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { parseMetrics } from "../../test/parse-metrics.ts";
import { Instrument } from "./instruments.ts";
import { counterOf, histogramOf, observeMetric } from "./metrics.ts";
import { metricsText } from "./metrics-text.ts";

const EXAMPLE_TOTAL = {
  name: "example_total",
  kind: "counter",
  help: "h",
  labels: ["name"],
  reduce: "sum",
} as const;
const EXAMPLE_SECONDS = {
  name: "example_seconds",
  kind: "histogram",
  help: "h",
  labels: [],
  bounds: [0.1, 1],
  reduce: "sum",
} as const;
const EXAMPLE_DEPTH = {
  name: "example_depth",
  kind: "gauge",
  help: "h",
  labels: ["queue"],
  reduce: "max",
} as const;

describe("metricsText()", () => {
  test("writes counters with their labels escaped, and without those that were removed", async () => {
    const family = counterOf(EXAMPLE_TOTAL);
    const odd = 'a "quoted"\\\n name';
    family.of({ name: odd }).add(2);
    family.of({ name: odd }).add();
    family.of({ name: "gone" }).add();
    family.remove({ name: "gone" });
    const { samples, types } = parseMetrics(await metricsText());
    assert.deepEqual(
      samples.filter(({ name }) => name === "example_total"),
      [{ name: "example_total", labels: { name: odd }, value: 3 }],
    );
    assert.equal(types.get("example_total"), "counter");
  });

  test("writes histograms as cumulative buckets with sum and count", async () => {
    const series = histogramOf(EXAMPLE_SECONDS).of({});
    for (const value of [0.05, 0.1, 0.5, 3]) series.observe(value);
    const { samples } = parseMetrics(await metricsText());
    const found = samples.filter(({ name }) => name.startsWith("example_seconds"));
    assert.deepEqual(
      found.map(({ name, labels, value }) => [name, labels.le, value]),
      [
        ["example_seconds_bucket", "0.1", 2],
        ["example_seconds_bucket", "1", 3],
        ["example_seconds_bucket", "+Inf", 4],
        ["example_seconds_sum", undefined, 3.65],
        ["example_seconds_count", undefined, 4],
      ],
    );
  });

  test("asks observers at each call, sums the same series, leaves out those that fail and those disposed of", async () => {
    const depth = (queue: string, value: number) => [{ labels: { queue }, value }];
    using _one = observeMetric(EXAMPLE_DEPTH, () => depth("jobs", 3));
    using _two = observeMetric(EXAMPLE_DEPTH, async () => depth("jobs", 4));
    using _failing = observeMetric(EXAMPLE_DEPTH, () => Promise.reject(new Error("away")));
    observeMetric(EXAMPLE_DEPTH, () => depth("old", 1))[Symbol.dispose]();
    const { samples } = parseMetrics(await metricsText());
    assert.deepEqual(
      samples.filter(({ name }) => name === "example_depth"),
      [{ name: "example_depth", labels: { queue: "jobs" }, value: 7 }],
    );
  });

  test("has the process's own figures", async () => {
    const { samples } = parseMetrics(await metricsText());
    const names = new Set(samples.map(({ name }) => name));
    for (const name of [
      "process_resident_memory_bytes",
      "nodejs_eventloop_lag_p99_seconds",
      "process_cpu_seconds_total",
    ]) {
      assert.ok(names.has(name), name);
    }
  });
});

describe("Instrument", () => {
  test("every metric is in docs/observability.md as it is", async () => {
    const docs = await readFile(path.join(import.meta.dirname, "../../../../docs/observability.md"), "utf8");
    for (const { name, kind, labels, reduce, help } of Object.values(Instrument)) {
      const labelText = labels.map((label) => `\`${label}\``).join(", ");
      assert.ok(docs.includes(`| \`${name}\` | ${kind} | ${labelText} | ${reduce} | ${help} |`), name);
    }
  });

  test("names follow Prometheus: one prefix, base units, _total behind what only grows", () => {
    for (const { name, kind, help } of Object.values(Instrument)) {
      assert.match(name, /^hone_[a-z]+(_[a-z]+)*$/);
      assert.equal(name.endsWith("_total"), kind === "counter", name);
      assert.doesNotMatch(name, /_(ms|milliseconds|kb|mb)$/);
      assert.doesNotMatch(help, /[\\\n]/);
    }
    assert.equal(
      new Set(Object.values(Instrument).map(({ name }) => name)).size,
      Object.keys(Instrument).length,
    );
  });
});
