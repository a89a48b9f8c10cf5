/** Decodes judges from JSON. */

import { type JudgeConfig, parseJudges } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";

/** @throws {InvalidInputError} when the text is not a list of judges. */
export function decodeJudgesJson(json: string): readonly JudgeConfig[] {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refusal(`the list of judges is not JSON: ${json.slice(0, 200)}`, error);
  }
  const parsed = parseJudges(value);
  if (parsed.kind === "judges") return parsed.judges;
  throw refusal(parsed.problems.map((problem) => problem.message).join("; "));
}

function refusal(message: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(message, { path: "judge", allowed: "a list of judges" }, { cause });
}

/** The value of `judge` in a run file; undefined where the text is not a run file. */
export function judgesIn(configJson: string): unknown {
  try {
    const config: unknown = parseJson(configJson);
    return typeof config === "object" && config !== null ? Reflect.get(config, "judge") : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
