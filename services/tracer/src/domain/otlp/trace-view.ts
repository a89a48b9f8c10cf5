/** Turns the stored pieces of a trace into one list of spans for the page. */

import { fromBinary } from "@bufbuild/protobuf";
import {
  type KeyValue,
  type Span,
  Span_SpanKind,
  Status_StatusCode,
  type TracesData,
  TracesDataSchema,
} from "@hone/otlp-proto";
import { Attr } from "@hone/telemetry";
import { type PlainValue, plainValue } from "./plain-value.ts";

export interface SpanView {
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: string;
  readonly service: string;
  /** Milliseconds since the trace's first span began. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly isError: boolean;
  readonly statusMessage: string;
  readonly attributes: Readonly<Record<string, PlainValue>>;
  readonly events: ReadonlyArray<{
    readonly name: string;
    readonly atMs: number;
    readonly attributes: Readonly<Record<string, PlainValue>>;
  }>;
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>;
}

export interface TraceView {
  readonly traceId: string;
  /** Begin of the first span, Unix milliseconds. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Ordered by their begin. */
  readonly spans: readonly SpanView[];
  /** Number of pieces that could not be decoded; they are left out. */
  readonly unreadablePieces: number;
}

/** The span of a step has a link to every rollout; the page shows some of them. */
const MAX_LINKS_SHOWN = 64;

const KIND_NAMES = new Map<number, string>(
  Object.entries(Span_SpanKind).map(([name, number]) => [number, name.toLowerCase()]),
);

/**
 * Joins the pieces. A span that came twice, as when an exporter sent it again, is shown once.
 * @returns undefined when there is no readable span.
 */
export function traceViewOf(traceId: string, pieces: readonly Uint8Array[]): TraceView | undefined {
  const found = new Map<string, { span: Span; service: string }>();
  let unreadablePieces = 0;
  for (const piece of pieces) {
    const data = tryDecode(piece);
    if (data === undefined) {
      unreadablePieces++;
      continue;
    }
    for (const { resource, scopeSpans } of data.resourceSpans) {
      const name = resource?.attributes.find((attribute) => attribute.key === Attr.serviceName)?.value;
      const service = name === undefined ? "" : String(plainValue(name));
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        found.set(hex(span.spanId), { span, service });
    }
  }
  if (found.size === 0) return undefined;
  const { begin, end } = extentOf(Array.from(found.values(), ({ span }) => span));
  return {
    traceId,
    startedAtMs: Number(begin / 1_000_000n),
    durationMs: milliseconds(end - begin),
    spans: Array.from(found.values(), ({ span, service }) => viewOf(span, service, begin)).toSorted(
      (a, b) => a.startMs - b.startMs,
    ),
    unreadablePieces,
  };
}

/** From the first begin to the last end; nanoseconds, which need more than 53 bits. */
function extentOf(spans: readonly Span[]): { begin: bigint; end: bigint } {
  let begin = spans[0]?.startTimeUnixNano ?? 0n;
  let end = begin;
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    if (startTimeUnixNano < begin) begin = startTimeUnixNano;
    if (endTimeUnixNano > end) end = endTimeUnixNano;
  }
  return { begin, end };
}

function tryDecode(piece: Uint8Array): TracesData | undefined {
  try {
    return fromBinary(TracesDataSchema, piece);
  } catch {
    // The intake does not decode spans, so a stored piece may be broken; the caller counts it.
    return undefined;
  }
}

function viewOf(span: Span, service: string, begin: bigint): SpanView {
  return {
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId),
    name: span.name,
    kind: KIND_NAMES.get(span.kind) ?? "unspecified",
    service,
    startMs: milliseconds(span.startTimeUnixNano - begin),
    durationMs: milliseconds(span.endTimeUnixNano - span.startTimeUnixNano),
    isError: span.status?.code === Status_StatusCode.ERROR,
    statusMessage: span.status?.message ?? "",
    attributes: plainAttributes(span.attributes),
    events: span.events.map((event) => ({
      name: event.name,
      atMs: milliseconds(event.timeUnixNano - begin),
      attributes: plainAttributes(event.attributes),
    })),
    links: span.links
      .slice(0, MAX_LINKS_SHOWN)
      .map((link) => ({ traceId: hex(link.traceId), spanId: hex(link.spanId) })),
  };
}

function plainAttributes(attributes: readonly KeyValue[]): Record<string, PlainValue> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));
}

function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}
