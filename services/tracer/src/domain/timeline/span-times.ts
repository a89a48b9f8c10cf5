/** Reads the times of spans from stored pieces of traces, without decoding what else is in them. */

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Attr } from "@hone/telemetry";
import {
  RESOURCE_SPANS_RESOURCE,
  RESOURCE_SPANS_SCOPE_SPANS,
  SCOPE_SPANS_SPAN,
  SPAN_END,
  SPAN_NAME,
  SPAN_START,
  TRACES_DATA_RESOURCE_SPANS,
} from "../otlp/trace-fields.ts";

/** When a span was. */
export interface SpanTime {
  readonly name: string;
  /** Of the process that made it; empty = it does not say. */
  readonly instance: string;
  /** Unix milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
}

// Field numbers of opentelemetry/proto/resource/v1/resource.proto and common/v1/common.proto.
const RESOURCE_ATTRIBUTES = 1;
const KEY_VALUE_KEY = 1;
const KEY_VALUE_VALUE = 2;
const ANY_VALUE_STRING = 1;
const NS_PER_MS = 1e6;

/** @param piece encoded opentelemetry.proto.trace.v1.TracesData. @returns no spans if the bytes are something else. */
export function spanTimesOf(piece: Uint8Array): SpanTime[] {
  const times: SpanTime[] = [];
  try {
    for (const resourceSpans of messagesIn(piece, TRACES_DATA_RESOURCE_SPANS)) {
      const instance = instanceOf(resourceSpans);
      for (const scopeSpans of messagesIn(resourceSpans, RESOURCE_SPANS_SCOPE_SPANS)) {
        for (const span of messagesIn(scopeSpans, SCOPE_SPANS_SPAN)) times.push(timeOf(span, instance));
      }
    }
  } catch {
    // The intake stores spans unread, so a piece may be broken; protobuf's reader throws errors without a class of their own.
    return [];
  }
  return times;
}

/** The contents of all fields with one number. */
function messagesIn(message: Uint8Array, wanted: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted && wireType === WireType.LengthDelimited) found.push(reader.bytes());
    else reader.skip(wireType, field);
  }
  return found;
}

function instanceOf(resourceSpans: Uint8Array): string {
  const attributes = messagesIn(resourceSpans, RESOURCE_SPANS_RESOURCE).flatMap((resource) =>
    messagesIn(resource, RESOURCE_ATTRIBUTES),
  );
  const own = attributes.find((attribute) => textIn(attribute, KEY_VALUE_KEY) === Attr.serviceInstanceId);
  const [value] = own === undefined ? [] : messagesIn(own, KEY_VALUE_VALUE);
  return value === undefined ? "" : textIn(value, ANY_VALUE_STRING);
}

function textIn(message: Uint8Array, field: number): string {
  return Buffer.from(messagesIn(message, field)[0] ?? []).toString();
}

function timeOf(span: Uint8Array, instance: string): SpanTime {
  const reader = new BinaryReader(span);
  let name = "";
  let fromMs = 0;
  let toMs = 0;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === SPAN_NAME && wireType === WireType.LengthDelimited) name = reader.string();
    else if (field === SPAN_START && wireType === WireType.Bit64)
      fromMs = Number(reader.fixed64()) / NS_PER_MS;
    else if (field === SPAN_END && wireType === WireType.Bit64) toMs = Number(reader.fixed64()) / NS_PER_MS;
    else reader.skip(wireType, field);
  }
  return { name, instance, fromMs, toMs };
}
