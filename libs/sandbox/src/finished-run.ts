/** Reads the result that a possibly hostile child sent. */

import { ProtocolError } from "./frame-reader.ts";
import type { FinishedRun } from "./protocol.ts";

/** A control character takes six bytes in JSON. A result has three texts, and its keys. */
const BYTES_PER_CHARACTER = 6;
const NUM_TEXTS = 3;
const FRAME_BYTES = 256;

/** Size of the longest result of a run with this limit of output. */
export function maxResultBytes(maxOutputBytes: number): number {
  return NUM_TEXTS * BYTES_PER_CHARACTER * maxOutputBytes + FRAME_BYTES;
}

/** @throws {ProtocolError} */
export function parseFinishedRun(payload: Uint8Array, maxOutputBytes: number): FinishedRun {
  const { output, isOutputCut, value, error } = parseObject(textOf(payload));
  const isText = (each: unknown): each is string => typeof each === "string" && each.length <= maxOutputBytes;
  if (!isText(output) || !isText(value) || typeof isOutputCut !== "boolean") {
    throw new ProtocolError("a result with wrong fields");
  }
  if (error !== undefined && !isText(error)) throw new ProtocolError("a result whose error is not text");
  return { output, isOutputCut, value, error };
}

/** @throws {ProtocolError} */
export function textOf(payload: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    throw new ProtocolError("text that is not UTF-8");
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // The error is thrown below.
  }
  throw new ProtocolError("a result that is not a JSON object");
}
