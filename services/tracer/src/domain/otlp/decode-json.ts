/**
 * Converts OTLP's JSON encoding to the protobuf encoding.
 *
 * It is proto3 JSON except that ids are hexadecimal instead of base64 (opentelemetry-proto, docs/specification.md,
 * "JSON Protobuf Encoding"). Unknown fields are ignored, as the specification requires.
 */

import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { ExportTraceServiceRequestSchema } from "@hone/otlp-proto";
import { BadBodyError } from "../../errors.ts";

const ID_KEYS: ReadonlySet<string> = new Set([
  "traceId",
  "spanId",
  "parentSpanId",
  "trace_id",
  "span_id",
  "parent_span_id",
]);
const HEX = /^(?:[0-9a-fA-F]{2})*$/;
/** Attribute values may be nested, but deeper nesting than this is an attempt to overflow the stack. */
const MAX_DEPTH = 64;

/** @throws {BadBodyError} when the text is not JSON, or not a trace export. */
export function encodeJsonExport(text: string): Uint8Array {
  try {
    const json = withBase64Ids(JSON.parse(text), 0);
    return toBinary(
      ExportTraceServiceRequestSchema,
      fromJson(ExportTraceServiceRequestSchema, json, { ignoreUnknownFields: true }),
    );
  } catch (error) {
    if (error instanceof BadBodyError) throw error;
    throw new BadBodyError("cannot be decoded as JSON", { cause: error });
  }
}

function withBase64Ids(value: JsonValue, depth: number): JsonValue {
  if (depth > MAX_DEPTH) throw new BadBodyError(`nests deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((item) => withBase64Ids(item, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      ID_KEYS.has(key) && typeof inner === "string" ? hexToBase64(inner) : withBase64Ids(inner, depth + 1),
    ]),
  );
}

function hexToBase64(id: string): string {
  if (!HEX.test(id)) throw new BadBodyError(`holds an id that is not hexadecimal: "${id.slice(0, 64)}"`);
  return Buffer.from(id, "hex").toString("base64");
}
