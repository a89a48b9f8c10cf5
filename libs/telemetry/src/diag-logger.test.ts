import assert from "node:assert/strict";
import { test } from "node:test";
import { throttledDiagLogger } from "./diag-logger.ts";
import { createLogger } from "./logger.ts";

test("throttledDiagLogger() writes a warning that repeats once in 30 s, with the count of those left out", () => {
  const lines: string[] = [];
  let now = 0;
  const diag = throttledDiagLogger(
    createLogger({ service: "judge", sink: { write: (line) => lines.push(line) } }),
    () => now,
  );
  for (let i = 0; i < 10; i++) diag.error("export failed");
  assert.equal(lines.length, 1);
  now = 30_000;
  diag.error("export failed");
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /"leftOut":9/);
});

test("throttledDiagLogger() writes each kind of warning, whatever the numbers in it", () => {
  const lines: string[] = [];
  const logger = createLogger({ service: "judge", sink: { write: (line) => lines.push(line) } });
  const diag = throttledDiagLogger(logger, () => 0);
  diag.warn("dropped 12 spans");
  diag.warn("dropped 900 spans");
  diag.warn("unknown sampler");
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /unknown sampler/);
});
