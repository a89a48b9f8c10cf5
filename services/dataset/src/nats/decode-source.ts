/** A split's part of the run file, from JSON to the domain's words. */

import { ConfigError, parseTaskSource } from "@hone/config";
import { parseJson } from "@hone/core";
import type { SourceSpec } from "../domain/source-spec.ts";
import { SourceError } from "../errors.ts";

/** @throws {SourceError} naming the key below the source that is wrong. */
export function decodeSource(value: unknown): SourceSpec {
  try {
    return parseTaskSource(value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [problem] = error.problems;
    // Its message is the problem's own: as a cause it would be told twice.
    throw new SourceError(`Cannot read a dataset source: ${problem?.message ?? error.message}`, {
      path: problem?.key ?? "",
      allowed: problem?.allowed ?? "a source",
    });
  }
}

/** @throws {SourceError} when the text is no JSON, or no source. */
export function decodeSourceJson(json: string): SourceSpec {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw new SourceError(
      `Cannot read a dataset source as it must be JSON: current value is ${json.slice(0, 200)}`,
      { path: "", allowed: "a JSON object" },
      { cause: error },
    );
  }
  return decodeSource(value);
}
