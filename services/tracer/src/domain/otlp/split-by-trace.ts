/**
 * Splits an OTLP trace export into one piece for each trace, without decoding the spans.
 *
 * Thousands of spans a second must cost little, and most of them are never read. So only the fields around the spans are
 * parsed (2 us a span, where decoding takes 10 us and more), and the bytes of each span are copied. A piece is an encoded
 * TracesData, and so are several concatenated pieces, because `resource_spans` is repeated and protobuf joins the
 * repeated fields of concatenated messages.
 */

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { BadBodyError } from "../../errors.ts";
import {
  RESOURCE_SPANS_SCOPE_SPANS,
  SCOPE_SPANS_SPAN,
  SPAN_NAME,
  SPAN_SPAN_ID,
  SPAN_TRACE_ID,
  TRACES_DATA_RESOURCE_SPANS,
} from "./trace-fields.ts";

/** Spans of one trace. */
export interface TracePiece {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  readonly spanCount: number;
  /** Encoded opentelemetry.proto.trace.v1.TracesData. */
  readonly data: Uint8Array;
}

/** The content of one export. */
export interface SplitExport {
  readonly pieces: readonly TracePiece[];
  readonly spanCount: number;
  /** The encoded spans that have the name the caller asked for. */
  readonly picked: readonly Uint8Array[];
  /** Number of spans without a valid trace id or span id; they are left out. */
  readonly invalidCount: number;
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/**
 * Splits an encoded ExportTraceServiceRequest.
 * @param pick name of the spans that the caller wants to decode.
 * @throws {BadBodyError} when the bytes are something else.
 */
export function splitByTrace(body: Uint8Array, pick: string): SplitExport {
  const traces = new Map<string, ResourcePart[]>();
  const picked: Uint8Array[] = [];
  const wantedName = Buffer.from(pick);
  let spanCount = 0;
  let invalidCount = 0;
  try {
    for (const resourceSpans of openMessage(body, TRACES_DATA_RESOURCE_SPANS).inner) {
      const resource = openMessage(resourceSpans, RESOURCE_SPANS_SCOPE_SPANS);
      for (const scopeSpans of resource.inner) {
        const scope = openMessage(scopeSpans, SCOPE_SPANS_SPAN);
        for (const bytes of scope.inner) {
          const span = identify(bytes);
          if (span === undefined) {
            invalidCount++;
            continue;
          }
          spanCount++;
          if (span.name !== undefined && wantedName.equals(span.name)) picked.push(bytes);
          addSpan(traces, span.traceId, resource, scope, bytes);
        }
      }
    }
  } catch (error) {
    if (error instanceof BadBodyError) throw error;
    // For bytes that are not protobuf the reader throws errors without a class of their own.
    throw new BadBodyError("cannot be decoded as protobuf", { cause: error });
  }
  const pieces = Array.from(traces, ([traceId, resources]) => ({
    traceId,
    spanCount: resources.reduce(
      (sum, { scopes }) => sum + scopes.reduce((n, { spans }) => n + spans.length, 0),
      0,
    ),
    data: encodePiece(resources),
  }));
  return { pieces, spanCount, picked, invalidCount };
}

/** A parsed message: the contents of the fields with one number, and the bytes of all other fields. */
interface OpenMessage {
  readonly inner: readonly Uint8Array[];
  readonly rest: readonly Uint8Array[];
}

/** The spans of one trace below one resource. */
interface ResourcePart {
  readonly message: OpenMessage;
  readonly scopes: { readonly message: OpenMessage; readonly spans: Uint8Array[] }[];
}

function openMessage(message: Uint8Array, wanted: number): OpenMessage {
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

/** Spans come in the order of the export, so a span mostly has the resource and the scope of its trace's previous span. */
function addSpan(
  traces: Map<string, ResourcePart[]>,
  traceId: string,
  resource: OpenMessage,
  scope: OpenMessage,
  span: Uint8Array,
): void {
  let resources = traces.get(traceId);
  if (resources === undefined) {
    resources = [];
    traces.set(traceId, resources);
  }
  let part = resources.at(-1);
  if (part?.message !== resource) {
    part = { message: resource, scopes: [] };
    resources.push(part);
  }
  const last = part.scopes.at(-1);
  if (last?.message === scope) last.spans.push(span);
  else part.scopes.push({ message: scope, spans: [span] });
}

/** The trace id and the name of an encoded span; undefined where the ids do not conform to the specification. */
function identify(span: Uint8Array): { traceId: string; name: Uint8Array | undefined } | undefined {
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
  if (traceId.every(isZero) || spanId.every(isZero)) return undefined;
  return { traceId: Buffer.from(traceId.buffer, traceId.byteOffset, traceId.length).toString("hex"), name };
}

function isZero(byte: number): boolean {
  return byte === 0;
}

/** Encodes a TracesData into one allocation: first all lengths are computed, from the inside out, then the bytes are written. */
function encodePiece(resources: readonly ResourcePart[]): Uint8Array {
  const sized = resources.map(({ message, scopes }) => {
    const sizedScopes = scopes.map((scope) => ({
      ...scope,
      size: sizeOf(scope.message.rest) + scope.spans.reduce((sum, span) => sum + fieldSize(span.length), 0),
    }));
    const size = sizeOf(message.rest) + sizedScopes.reduce((sum, scope) => sum + fieldSize(scope.size), 0);
    return { message, scopes: sizedScopes, size };
  });
  const out = new Uint8Array(sized.reduce((sum, { size }) => sum + fieldSize(size), 0));
  let at = 0;
  const head = (field: number, size: number) => {
    out[at++] = (field << 3) | WireType.LengthDelimited;
    for (let left = size; ; left >>>= 7) {
      out[at++] = left > 0x7f ? (left & 0x7f) | 0x80 : left;
      if (left <= 0x7f) return;
    }
  };
  const copy = (bytes: Uint8Array) => {
    out.set(bytes, at);
    at += bytes.length;
  };
  for (const resource of sized) {
    head(TRACES_DATA_RESOURCE_SPANS, resource.size);
    resource.message.rest.forEach(copy);
    for (const scope of resource.scopes) {
      head(RESOURCE_SPANS_SCOPE_SPANS, scope.size);
      scope.message.rest.forEach(copy);
      for (const span of scope.spans) {
        head(SCOPE_SPANS_SPAN, span.length);
        copy(span);
      }
    }
  }
  return out;
}

function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** Bytes of a length-delimited field with a number below 16. */
function fieldSize(length: number): number {
  let varintBytes = 1;
  for (let left = length; left > 0x7f; left >>>= 7) varintBytes++;
  return 1 + varintBytes + length;
}
