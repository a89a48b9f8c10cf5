/** Reads the result that a child sent; the child may be hostile. */

import { ProtocolError } from "./frame-reader.ts";
import type { FinishedRun } from "./protocol.ts";

/** A control character takes six bytes in JSON; three texts, and names. */
const BYTES_PER_CHARACTER = 6;
const NUM_TEXTS = 3;
const FRAME_BYTES = 256;

/** Longest result of a run that may print so much. */
export function maxResultBytes(maxOutputBytes: number): number {
  return NUM_TEXTS * BYTES_PER_CHARACTER * maxOutputBytes + FRAME_BYTES;
}

/** @throws {ProtocolError} */
export function parseFinishedRun(payload: Uint8Array, maxOutputBytes: number): FinishedRun {
  const { output, isOutputCut, value, error } = parseObject(textOf(payload));
  const isText = (each: unknown): each is string => typeof each === "string" && each.length <= maxOutputBytes;
  if (!isText(output) || !isText(value) || typeof isOutputCut !== "boolean") {
    throw new ProtocolError("a result that is none");
  }
  if (error !== undefined && !isText(error)) throw new ProtocolError("an error that is none");
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
    // Told below.
  }
  throw new ProtocolError("a result that is no object of JSON");
}
