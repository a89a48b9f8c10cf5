/** Spans of the sample run, as the services that take part in a rollout make them. */

import { create, toBinary } from "@bufbuild/protobuf";
import { rolloutIdOf, type Slot, slotKey } from "@hone/core";
import { ExportTraceServiceRequestSchema, Span_SpanKind } from "@hone/otlp-proto";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { Attr, EventName, SpanName } from "@hone/telemetry";

type Attributes = Readonly<Record<string, string | number | readonly number[]>>;

export interface TracedRollout {
  readonly runId: string;
  readonly slot: Slot;
  readonly scored: ScoredEpisode;
  /** Undefined where the rollout was excluded from training. */
  readonly advantage: number | undefined;
  /** Advantages of the turns, where turns have their own. */
  readonly turnAdvantages?: readonly number[] | undefined;
  /** Begin of the rollout; Unix milliseconds. */
  readonly beginMs: number;
}

/** Encodes one export with the trace of a rollout. */
export function encodeTrace({
  runId,
  slot,
  scored,
  advantage,
  turnAdvantages,
  beginMs,
}: TracedRollout): Uint8Array {
  const begin = BigInt(beginMs) * 1_000_000n;
  const ms = (value: number) => begin + BigInt(Math.round(value * 1e6));
  let next = 0;
  const span = (
    name: string,
    parent: number | undefined,
    from: number,
    to: number,
    attributes: Attributes = {},
  ) => ({
    traceId: Buffer.from(traceIdOf(slot), "hex"),
    spanId: Buffer.from(spanIdOf(slot, next++), "hex"),
    ...(parent !== undefined && { parentSpanId: Buffer.from(spanIdOf(slot, parent), "hex") }),
    name,
    kind: Span_SpanKind.INTERNAL,
    startTimeUnixNano: ms(from),
    endTimeUnixNano: ms(to),
    attributes: attributesOf(attributes),
  });
  const identity = {
    [Attr.runId]: runId,
    [Attr.slot]: slotKey(slot),
    [Attr.rolloutId]: rolloutIdOf(runId, slot),
  };
  const root = span(SpanName.rollout, undefined, 0, 420, identity);
  const agent = span(SpanName.invokeAgent("frozen_lake"), 0, 4, 380, identity);
  const turns = (scored.episode?.turns ?? []).flatMap((_, turn) => {
    const from = 6 + turn * 45;
    return [
      span(SpanName.chat(runId), 1, from, from + 38, { [Attr.turn]: turn, [Attr.genAiOutputTokens]: 4 }),
      span(SpanName.environmentStep, 1, from + 38.2, from + 38.6, { [Attr.turn]: turn }),
    ];
  });
  const generations = (scored.episode?.turns ?? []).flatMap((_, turn) => {
    const from = 7 + turn * 45;
    return [
      span(SpanName.enginePrefill, 2 + 2 * turn, from, from + 4),
      span(SpanName.engineDecode, 2 + 2 * turn, from + 4, from + 36),
    ];
  });
  const judged = {
    ...span(SpanName.judge, 0, 384, 385, { ...identity, [Attr.reward]: scored.reward }),
    events: [
      {
        name: EventName.evaluationResult,
        timeUnixNano: ms(384.5),
        attributes: attributesOf({
          [Attr.genAiEvaluationName]: "environment",
          [Attr.genAiEvaluationScore]: scored.reward,
        }),
      },
    ],
  };
  const train =
    advantage === undefined
      ? []
      : [
          span(SpanName.train, 0, 401, 401.01, {
            ...identity,
            [Attr.advantage]: advantage,
            [Attr.ratioMax]: 1.21,
            ...(turnAdvantages !== undefined && { [Attr.turnAdvantages]: turnAdvantages }),
          }),
        ];
  const services = [
    ["trainer", [root, ...train]],
    ["agent-rollout", [agent, ...turns]],
    ["inference-gateway", generations],
    ["judge", [judged]],
  ] as const;
  return toBinary(
    ExportTraceServiceRequestSchema,
    create(ExportTraceServiceRequestSchema, {
      resourceSpans: services.map(([name, spans]) => ({
        resource: {
          attributes: attributesOf({ [Attr.serviceName]: name, [Attr.serviceInstanceId]: `${name}-0` }),
        },
        scopeSpans: [{ scope: { name: "hone" }, spans: [...spans] }],
      })),
    }),
  );
}

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: {
      value:
        typeof value === "object"
          ? ({
              case: "arrayValue",
              value: { values: value.map((each) => ({ value: plainValue(each) })) },
            } as const)
          : plainValue(value),
    },
  }));
}

function plainValue(value: string | number) {
  return typeof value === "string"
    ? ({ case: "stringValue", value } as const)
    : ({ case: "doubleValue", value } as const);
}

export function traceIdOf(slot: Slot): string {
  return `5a${slot.step.toString(16).padStart(10, "0")}${slot.task.toString(16).padStart(10, "0")}${slot.index.toString(16).padStart(10, "0")}`;
}

export function spanIdOf(slot: Slot, span: number): string {
  return `${(slot.step * 64 + slot.index + 1).toString(16).padStart(12, "0")}${(span + 1).toString(16).padStart(4, "0")}`;
}
