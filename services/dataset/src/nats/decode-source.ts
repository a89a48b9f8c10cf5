/** Reads a split's part of the run file from JSON. */

import { ConfigError, parseTaskSource } from "@hone/config";
import { parseJson } from "@hone/core";
import type { SourceSpec } from "../domain/source-spec.ts";
import { SourceError } from "../errors.ts";

/** @throws {SourceError} that names the wrong key below the source. */
export function decodeSource(value: unknown): SourceSpec {
  try {
    return parseTaskSource(value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [problem] = error.problems;
    // The error is not given as the cause, as its message would then appear twice.
    throw new SourceError(`a dataset source is wrong: ${problem?.message ?? error.message}`, {
      path: problem?.key ?? "",
      allowed: problem?.allowed ?? "a source",
    });
  }
}

/** @throws {SourceError} when the text is not JSON or does not describe a source. */
export function decodeSourceJson(json: string): SourceSpec {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw new SourceError(
      `a dataset source must be a JSON object, and this is not JSON: ${json.slice(0, 200)}`,
      { path: "", allowed: "a JSON object" },
      { cause: error },
    );
  }
  return decodeSource(value);
}
