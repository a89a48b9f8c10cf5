/**
 * An OTLP trace export, cut into one piece per trace without decoding the spans.
 *
 * Thousands of spans a second must cost little, and nobody reads most of them: so only the frames are walked (2 us a
 * span against 10 us and more for decoding it) and each span's bytes are copied as they came. A piece is itself an
 * encoded TracesData, and so are several pieces one after another: `resource_spans` is repeated, and protobuf joins
 * repeated fields of concatenated messages.
 */

import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { BadBodyError } from "../../errors.ts";

/** Spans of one trace. */
export interface TracePiece {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  readonly spanCount: number;
  /** Encoded opentelemetry.proto.trace.v1.TracesData. */
  readonly data: Uint8Array;
}

/** What one export held. */
export interface SplitExport {
  readonly pieces: readonly TracePiece[];
  readonly spanCount: number;
  /** Encoded spans whose name was asked for. */
  readonly picked: readonly Uint8Array[];
  /** Spans without a valid trace id or span id; they are left out. */
  readonly invalidCount: number;
}

// Field numbers of opentelemetry/proto/trace/v1/trace.proto. ExportTraceServiceRequest and TracesData have the same shape.
const EXPORT_RESOURCE_SPANS = 1;
const RESOURCE_SPANS_SCOPE_SPANS = 2;
const SCOPE_SPANS_SPAN = 2;
const SPAN_TRACE_ID = 1;
const SPAN_SPAN_ID = 2;
const SPAN_NAME = 5;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/**
 * Cuts an encoded ExportTraceServiceRequest.
 * @param pick name of the spans that the caller wants to look into.
 * @throws {BadBodyError} when the bytes are no such message.
 */
export function splitByTrace(body: Uint8Array, pick: string): SplitExport {
  const writers = new Map<string, { writer: BinaryWriter; spanCount: number }>();
  const picked: Uint8Array[] = [];
  let spanCount = 0;
  let invalidCount = 0;
  try {
    for (const resourceSpans of fieldsOf(body, EXPORT_RESOURCE_SPANS)) {
      const resource = messageOf(resourceSpans, RESOURCE_SPANS_SCOPE_SPANS);
      const scopesByTrace = new Map<string, { scopes: Uint8Array[]; spanCount: number }>();
      for (const scopeSpans of resource.inner) {
        const scope = messageOf(scopeSpans, SCOPE_SPANS_SPAN);
        const spansByTrace = new Map<string, Uint8Array[]>();
        for (const bytes of scope.inner) {
          const span = identify(bytes);
          if (span === undefined) {
            invalidCount++;
            continue;
          }
          spanCount++;
          if (span.name === pick) picked.push(bytes);
          append(spansByTrace, span.traceId, bytes);
        }
        for (const [traceId, spans] of spansByTrace) {
          const entry = scopesByTrace.get(traceId) ?? { scopes: [], spanCount: 0 };
          entry.scopes.push(encode(scope.rest, SCOPE_SPANS_SPAN, spans));
          entry.spanCount += spans.length;
          scopesByTrace.set(traceId, entry);
        }
      }
      for (const [traceId, { scopes, spanCount: count }] of scopesByTrace) {
        const entry = writers.get(traceId) ?? { writer: new BinaryWriter(), spanCount: 0 };
        const bytes = encode(resource.rest, RESOURCE_SPANS_SCOPE_SPANS, scopes);
        entry.writer.tag(EXPORT_RESOURCE_SPANS, WireType.LengthDelimited).bytes(bytes);
        entry.spanCount += count;
        writers.set(traceId, entry);
      }
    }
  } catch (error) {
    if (error instanceof BadBodyError) throw error;
    // The reader throws plain errors for what is no protobuf.
    throw new BadBodyError("is no such protobuf message", { cause: error });
  }
  const pieces = Array.from(writers, ([traceId, { writer, spanCount: count }]) => ({
    traceId,
    spanCount: count,
    data: writer.finish(),
  }));
  return { pieces, spanCount, picked, invalidCount };
}

/** The length-delimited fields with one number; other fields are skipped. */
function fieldsOf(message: Uint8Array, wanted: number): Uint8Array[] {
  return messageOf(message, wanted).inner;
}

/** A message as its fields with one number, and everything else as it came. */
function messageOf(message: Uint8Array, wanted: number): { inner: Uint8Array[]; rest: Uint8Array[] } {
  const reader = new BinaryReader(message);
  const inner: Uint8Array[] = [];
  const rest: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const begin = reader.pos;
    const [field, wireType] = reader.tag();
    if (field === wanted) {
      if (wireType !== WireType.LengthDelimited)
        throw new BadBodyError(`has field ${field} with wire type ${wireType}`);
      inner.push(reader.bytes());
    } else {
      reader.skip(wireType, field);
      rest.push(message.subarray(begin, reader.pos));
    }
  }
  return { inner, rest };
}

function encode(rest: readonly Uint8Array[], field: number, inner: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const bytes of rest) writer.raw(bytes);
  for (const bytes of inner) writer.tag(field, WireType.LengthDelimited).bytes(bytes);
  return writer.finish();
}

const names = new TextDecoder();

/** Trace id and name of an encoded span; undefined where the ids are not what the specification wants. */
function identify(span: Uint8Array): { traceId: string; name: string } | undefined {
  const reader = new BinaryReader(span);
  let traceId: Uint8Array | undefined;
  let spanId: Uint8Array | undefined;
  let name: Uint8Array | undefined;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (
      wireType === WireType.LengthDelimited &&
      (field === SPAN_TRACE_ID || field === SPAN_SPAN_ID || field === SPAN_NAME)
    ) {
      const bytes = reader.bytes();
      if (field === SPAN_TRACE_ID) traceId = bytes;
      else if (field === SPAN_SPAN_ID) spanId = bytes;
      else name = bytes;
    } else {
      reader.skip(wireType, field);
    }
  }
  if (traceId?.length !== TRACE_ID_BYTES || spanId?.length !== SPAN_ID_BYTES) return undefined;
  if (traceId.every((byte) => byte === 0) || spanId.every((byte) => byte === 0)) return undefined;
  return {
    traceId: Buffer.from(traceId.buffer, traceId.byteOffset, traceId.length).toString("hex"),
    name: name === undefined ? "" : names.decode(name),
  };
}

function append(into: Map<string, Uint8Array[]>, key: string, value: Uint8Array): void {
  const list = into.get(key);
  if (list === undefined) into.set(key, [value]);
  else list.push(value);
}
