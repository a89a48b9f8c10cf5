/**
 * The OTLP/HTTP intake: POST /v1/traces, protobuf or JSON, plain or gzip.
 *
 * The answers are those of the OTLP specification, in the encoding of the request: 400 for a body that must not be sent
 * again, 413 for one that is too large, 200 with a partial success where some spans were rejected.
 */

import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ExportTraceServiceResponseSchema } from "@hone/otlp-proto";
import { Hono } from "hono";
import { encodeJsonExport } from "../domain/otlp/decode-json.ts";
import type { SpanIntake } from "../domain/span-intake.ts";
import { BadBodyError, BodyTooLargeError } from "../errors.ts";
import type { OtlpForwarder } from "./otlp-forwarder.ts";
import { readBody } from "./read-body.ts";

const PROTOBUF = "application/x-protobuf";
const JSON_TYPE = "application/json";
/** INVALID_ARGUMENT of google.rpc.Code. */
const RPC_INVALID_ARGUMENT = 3;

export interface OtlpRoutesOptions {
  readonly intake: SpanIntake;
  readonly forwarder: OtlpForwarder | undefined;
  readonly maxBodyBytes: number;
}

export function otlpRoutes(options: OtlpRoutesOptions): Hono {
  const { intake, forwarder, maxBodyBytes } = options;
  const app = new Hono();
  app.post("/v1/traces", async function takeSpans(c) {
    const header = c.req.header("content-type") ?? "";
    const contentType = header.split(";")[0]?.trim().toLowerCase() ?? "";
    const isJson = contentType === JSON_TYPE;
    if (!isJson && contentType !== PROTOBUF) {
      return refusal(
        JSON_TYPE,
        415,
        `the spans are refused: their content type is "${header}"; send ${PROTOBUF} or ${JSON_TYPE}`,
      );
    }
    try {
      const { sent, body } = await readBody(c.req.raw, maxBodyBytes);
      const taken = intake.take(isJson ? encodeJsonExport(new TextDecoder().decode(body)) : body);
      forwarder?.offer({
        body: sent,
        contentType: header,
        contentEncoding: c.req.header("content-encoding"),
      });
      const answer = create(ExportTraceServiceResponseSchema, {
        ...(taken.rejected > 0 && {
          partialSuccess: { rejectedSpans: BigInt(taken.rejected), errorMessage: taken.reason },
        }),
      });
      return isJson
        ? c.body(toJsonString(ExportTraceServiceResponseSchema, answer), 200, { "content-type": JSON_TYPE })
        : c.body(bytesOf(toBinary(ExportTraceServiceResponseSchema, answer)), 200, {
            "content-type": PROTOBUF,
          });
    } catch (error) {
      if (error instanceof BadBodyError) return refusal(contentType, 400, error.message);
      if (error instanceof BodyTooLargeError) return refusal(contentType, 413, error.message);
      throw error;
    }
  });
  return app;
}

/** An error as a google.rpc.Status, which the specification requires. */
function refusal(contentType: string, status: number, message: string): Response {
  const isJson = contentType === JSON_TYPE;
  const body = isJson
    ? JSON.stringify({ code: RPC_INVALID_ARGUMENT, message })
    : bytesOf(
        new BinaryWriter()
          .tag(1, WireType.Varint)
          .int32(RPC_INVALID_ARGUMENT)
          .tag(2, WireType.LengthDelimited)
          .string(message)
          .finish(),
      );
  return new Response(body, { status, headers: { "content-type": contentType } });
}

/** Copies bytes into a buffer of their own, as responses require. */
function bytesOf(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
