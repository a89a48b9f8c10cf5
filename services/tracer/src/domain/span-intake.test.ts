import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLogger } from "@hone/telemetry";
import { BatchWriter } from "./batch-writer.ts";
import { encodeJsonExport } from "./otlp/decode-json.ts";
import type { TracePiece } from "./otlp/split-by-trace.ts";
import type { TrainFigures } from "./otlp/train-figures.ts";
import { SpanIntake } from "./span-intake.ts";

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");

/** One span in each of `count` traces. */
function exportOf(count: number): Uint8Array {
  const spans = Array.from({ length: count }, (_, i) => ({
    traceId: hex(i + 1, 32),
    spanId: hex(i + 1, 16),
    name: "chat",
  }));
  return encodeJsonExport(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }));
}

function intakeOn(write: (pieces: readonly TracePiece[]) => Promise<void>) {
  const lines: string[] = [];
  const options = { maxItems: 256, maxDelayMs: 1, isItemsFault: () => false };
  const pieces = new BatchWriter<TracePiece>({ ...options, write });
  const trainings = new BatchWriter<TrainFigures>({ ...options, write: async () => undefined });
  const logger = createLogger({ service: "tracer", sink: { write: (line: string) => lines.push(line) } });
  return { intake: new SpanIntake(pieces, trainings, logger), pieces, lines };
}

describe("SpanIntake", () => {
  test("counts the accepted spans and writes one piece for each trace", async () => {
    const written: string[] = [];
    const { intake, pieces } = intakeOn(async (batch) => {
      written.push(...batch.map(({ traceId }) => traceId));
    });
    assert.deepEqual(intake.take(exportOf(3)), { accepted: 3, rejected: 0, reason: "" });
    await pieces.flush();
    assert.equal(written.length, 3);
    assert.deepEqual(intake.counts, { accepted: 3, invalid: 0, dropped: 0 });
  });

  test("drops and counts spans that the database cannot take in time, and logs that once", () => {
    const { intake, lines } = intakeOn(() => new Promise(() => undefined));
    const body = exportOf(2_000);
    for (let i = 0; i < 10; i++) assert.equal(intake.take(body).rejected, 0);
    // By now the queue is full but for the spans that are being written.
    const refused = [1, 2, 3].map(() => intake.take(body)).filter(({ rejected }) => rejected > 0);
    assert.ok(refused.length >= 2);
    assert.equal(refused[0]!.rejected, 2_000);
    assert.match(refused[0]!.reason, /full/);
    assert.equal(intake.counts.dropped, refused.length * 2_000);
    assert.equal(lines.length, 1);
  });

  test("counts spans that the database refused", async () => {
    const { intake, pieces } = intakeOn(() => Promise.reject(new Error("away")));
    intake.take(exportOf(5));
    await pieces.flush();
    await new Promise(setImmediate);
    assert.equal(intake.counts.dropped, 5);
  });
});
