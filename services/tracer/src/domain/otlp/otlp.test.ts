import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import { Random } from "@hone/core";
import { ExportTraceServiceRequestSchema, Span_SpanKind } from "@hone/otlp-proto";
import { readTracerConfig } from "../../config.ts";
import { BadBodyError } from "../../errors.ts";
import { encodeJsonExport } from "./decode-json.ts";
import { splitByTrace } from "./split-by-trace.ts";
import { traceViewOf } from "./trace-view.ts";
import { trainFiguresOf } from "./train-figures.ts";

const traceA = Buffer.from("0af7651916cd43dd8448eb211c80319c", "hex");
const traceB = Buffer.from("1bf7651916cd43dd8448eb211c80319c", "hex");
/** MAX_LINKS of libs/telemetry. */
const MOST_LINKS = 65_536;
const spanId = (n: number) => Buffer.from(n.toString(16).padStart(16, "0"), "hex");
const text = (key: string, value: string) => ({
  key,
  value: { value: { case: "stringValue" as const, value } },
});
const double = (key: string, value: number) => ({
  key,
  value: { value: { case: "doubleValue" as const, value } },
});
const doubles = (key: string, values: readonly number[]) => ({
  key,
  value: {
    value: {
      case: "arrayValue" as const,
      value: { values: values.map((value) => double("", value).value) },
    },
  },
});

function exportOf(init: MessageInitShape<typeof ExportTraceServiceRequestSchema>) {
  const message = create(ExportTraceServiceRequestSchema, init);
  return { message, bytes: toBinary(ExportTraceServiceRequestSchema, message) };
}

const mixed = exportOf({
  resourceSpans: [
    {
      resource: { attributes: [text("service.name", "trainer")] },
      schemaUrl: "https://opentelemetry.io/schemas/1.41.1",
      scopeSpans: [
        {
          scope: { name: "hone" },
          spans: [
            {
              traceId: traceA,
              spanId: spanId(1),
              name: "rollout",
              kind: Span_SpanKind.PRODUCER,
              startTimeUnixNano: 1_700_000_000_000_000_000n,
              endTimeUnixNano: 1_700_000_000_250_000_000n,
              events: [{ name: "gen_ai.evaluation.result", timeUnixNano: 1_700_000_000_100_000_000n }],
            },
            { traceId: traceB, spanId: spanId(2), name: "rollout" },
            {
              traceId: traceA,
              spanId: spanId(3),
              parentSpanId: spanId(1),
              name: "train",
              startTimeUnixNano: 1_700_000_000_200_000_000n,
              endTimeUnixNano: 1_700_000_000_250_000_000n,
              attributes: [
                text("hone.rollout.id", "lake-1/train.3.17.5"),
                double("hone.advantage", -0.75),
                double("hone.ratio.max", 1.25),
                doubles("hone.turn.advantages", [0.5, -1]),
              ],
            },
          ],
        },
      ],
    },
    {
      resource: { attributes: [text("service.name", "judge")] },
      scopeSpans: [
        {
          spans: [
            {
              traceId: traceA,
              spanId: spanId(4),
              parentSpanId: spanId(1),
              name: "judge",
              startTimeUnixNano: 1_700_000_000_100_000_000n,
              endTimeUnixNano: 1_700_000_000_101_000_000n,
            },
            { traceId: Buffer.alloc(16), spanId: spanId(5), name: "broken" },
            { traceId: traceA, spanId: Buffer.alloc(3), name: "broken" },
          ],
        },
      ],
    },
  ],
});

describe("splitByTrace()", () => {
  test("makes one piece for each trace, which decodes to the spans that were sent", () => {
    const split = splitByTrace(mixed.bytes, "train");
    assert.deepEqual(
      split.pieces.map(({ traceId, spanCount }) => [traceId, spanCount]),
      [
        [traceA.toString("hex"), 3],
        [traceB.toString("hex"), 1],
      ],
    );
    assert.equal(split.spanCount, 4);
    assert.equal(split.invalidCount, 2);
    const view = traceViewOf(traceA.toString("hex"), [split.pieces[0]!.data]);
    assert.ok(view !== undefined);
    assert.equal(view.durationMs, 250);
    assert.deepEqual(
      view.spans.map(({ name, service, startMs, kind }) => [name, service, startMs, kind]),
      [
        ["rollout", "trainer", 0, "producer"],
        ["judge", "judge", 100, "unspecified"],
        ["train", "trainer", 200, "unspecified"],
      ],
    );
    assert.equal(view.spans[0]!.events[0]!.atMs, 100);
    assert.equal(view.spans[1]!.parentSpanId, view.spans[0]!.spanId);
  });

  test("picks out the spans with the given name", () => {
    const [train] = splitByTrace(mixed.bytes, "train").picked;
    assert.deepEqual(trainFiguresOf(train!), {
      runId: "lake-1",
      slot: { split: "train", step: 3, task: 17, index: 5 },
      advantage: -0.75,
      figures: {
        "hone.ratio.max": 1.25,
        "hone.turn.advantages.0": 0.5,
        "hone.turn.advantages.1": -1,
      },
    });
  });

  test("joins pieces that came in several exports and shows a repeated span once", () => {
    const piece = splitByTrace(mixed.bytes, "train").pieces[0]!.data;
    const view = traceViewOf(traceA.toString("hex"), [
      piece,
      Buffer.concat([piece, piece]),
      Buffer.from("garbage"),
    ]);
    assert.equal(view!.spans.length, 3);
    assert.equal(view!.unreadablePieces, 1);
  });

  test("accepts a step's span with as many links as a span may have, and shows some of them", () => {
    const links = Array.from({ length: MOST_LINKS }, (_, i) => ({ traceId: traceB, spanId: spanId(i + 1) }));
    const step = { traceId: traceA, spanId: spanId(1), name: "step", links };
    const { bytes } = exportOf({ resourceSpans: [{ scopeSpans: [{ spans: [step] }] }] });
    const { maxBodyBytes } = readTracerConfig({
      HONE_NATS_URL: "nats://bus:4222",
      HONE_DATABASE_URL: "postgres://database/hone",
      HONE_STATE_DIR: "/state",
    });
    assert.ok(bytes.length > 2 ** 20 && bytes.length < maxBodyBytes / 2, `${bytes.length} bytes`);
    const [piece] = splitByTrace(bytes, "train").pieces;
    const view = traceViewOf(traceA.toString("hex"), [piece!.data]);
    assert.equal(view?.spans[0]?.links.length, 64);
  });

  test("accepts an empty export", () => {
    assert.deepEqual(splitByTrace(new Uint8Array(0), "train"), {
      pieces: [],
      spanCount: 0,
      picked: [],
      invalidCount: 0,
    });
  });

  test("refuses bytes that are not an export, whatever they are", () => {
    assert.throws(() => splitByTrace(Buffer.from("<html>not spans</html>"), "train"), BadBodyError);
    assert.throws(() => splitByTrace(mixed.bytes.subarray(0, mixed.bytes.length - 1), "train"), BadBodyError);
    const random = new Random(5);
    for (let round = 0; round < 3_000; round++) {
      const bytes = round % 2 === 0 ? Uint8Array.from(mixed.bytes) : new Uint8Array(random.nextInt(200));
      for (let i = 0; i < (round % 2 === 0 ? 3 : bytes.length); i++) {
        bytes[random.nextInt(bytes.length)] = random.nextInt(256);
      }
      try {
        for (const { traceId, data } of splitByTrace(bytes, "train").pieces) traceViewOf(traceId, [data]);
      } catch (error) {
        assert.ok(error instanceof BadBodyError, String(error));
      }
    }
  });

  test("refuses groups that are nested so deeply that they would overflow the stack", () => {
    assert.throws(() => splitByTrace(new Uint8Array(1_000_000).fill(0x1b), "train"), BadBodyError);
  });
});

describe("encodeJsonExport()", () => {
  const hexIds = (json: string) =>
    json.replace(
      /"(traceId|spanId|parentSpanId)":"([^"]*)"/g,
      (_, key: string, id: string) => `"${key}":"${Buffer.from(id, "base64").toString("hex")}"`,
    );

  test("gives the bytes of the same export in protobuf", () => {
    const json = hexIds(
      JSON.stringify(toJson(ExportTraceServiceRequestSchema, mixed.message, { enumAsInteger: true })),
    );
    assert.deepEqual(Buffer.from(encodeJsonExport(json)), Buffer.from(mixed.bytes));
  });

  test("ignores fields that it does not know", () => {
    assert.equal(encodeJsonExport('{"resourceSpans":[],"later":{"a":1}}').length, 0);
  });

  test("refuses texts that are not an export", () => {
    for (const body of [
      "",
      "nonsense",
      "[1]",
      '{"resourceSpans":7}',
      '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xyz"}]}]}]}',
      `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
    ]) {
      assert.throws(() => encodeJsonExport(body), BadBodyError, body.slice(0, 40));
    }
  });
});

describe("trainFiguresOf()", () => {
  test("gives nothing for a span of another system and for bytes that are not a span", () => {
    const other = exportOf({
      resourceSpans: [
        {
          scopeSpans: [
            {
              spans: [
                { traceId: traceA, spanId: spanId(1), name: "train", attributes: [text("speed", "fast")] },
              ],
            },
          ],
        },
      ],
    });
    const [span] = splitByTrace(other.bytes, "train").picked;
    assert.equal(trainFiguresOf(span!), undefined);
    assert.equal(trainFiguresOf(Buffer.from("garbage")), undefined);
  });
});
