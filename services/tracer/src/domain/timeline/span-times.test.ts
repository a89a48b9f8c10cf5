import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { TracesDataSchema } from "@hone/otlp-proto";
import { spanTimesOf } from "./span-times.ts";

const text = (value: string) => ({ value: { case: "stringValue", value } }) as const;

test("spanTimesOf() reads name, times and process of every span, also of concatenated pieces", () => {
  const piece = (instance: string, ...names: string[]) =>
    toBinary(
      TracesDataSchema,
      create(TracesDataSchema, {
        resourceSpans: [
          {
            resource: {
              attributes: [
                { key: "service.name", value: text("inference-gateway") },
                { key: "service.instance.id", value: text(instance) },
              ],
            },
            scopeSpans: [
              {
                spans: names.map((name) => ({
                  traceId: new Uint8Array(16).fill(1),
                  spanId: new Uint8Array(8).fill(2),
                  name,
                  startTimeUnixNano: 1_764_000_000_123_500_000n,
                  endTimeUnixNano: 1_764_000_000_125_000_000n,
                  attributes: [
                    { key: "hone.step", value: { value: { case: "intValue", value: 5n } as const } },
                  ],
                })),
              },
            ],
          },
        ],
      }),
    );
  const times = { fromMs: 1_764_000_000_123.5, toMs: 1_764_000_000_125 };
  assert.deepEqual(spanTimesOf(Buffer.concat([piece("a", "one", "two"), piece("b", "three")])), [
    { name: "one", instance: "a", ...times },
    { name: "two", instance: "a", ...times },
    { name: "three", instance: "b", ...times },
  ]);
});

test("spanTimesOf() finds nothing in bytes that are no spans", () => {
  assert.deepEqual(spanTimesOf(Buffer.from("no spans")), []);
});
