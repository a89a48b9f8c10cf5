import assert from "node:assert/strict";
import { test } from "node:test";
import { Attr, METRICS, MetricName } from "./semconv.ts";

test("attributes have OpenTelemetry's names or begin with hone., and no name stands twice", () => {
  const names = Object.values(Attr);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^(hone|gen_ai|messaging|service|error)\.[a-z0-9_.]+$/);
});

test("every metric says how its values become one", () => {
  assert.deepEqual(Object.keys(METRICS).sort(), Object.values(MetricName).sort());
});
