/** Reads one line of a file as a row. */

import { parseJson } from "@hone/core";
import { SourceError } from "../errors.ts";

/** One row and its place in the file. */
export interface JsonlRow {
  /** Line in the file, from 1. */
  readonly line: number;
  /** The line's text, known to be a JSON object. */
  readonly json: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** @throws {SourceError} when the line is not a JSON object; the message names file and line. */
export function parseRow(bytes: Buffer, name: string, line: number): JsonlRow {
  // A byte order mark may stand before the first row.
  const json = bytes
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trim();
  const refuse = (found: string, cause?: unknown) =>
    new SourceError(
      `${name}:${line} is not a JSON object, as each line must be: ${found}`,
      { path: "path", allowed: "one JSON object a line" },
      { cause },
    );
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refuse(excerpt(json), error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse(excerpt(json));
  return { line, json, value: value as Record<string, unknown> };
}

/** The beginning of a broken line, by which it is recognised. */
function excerpt(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
