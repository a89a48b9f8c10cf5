/** The run's judges, from JSON to the domain's words. */

import { type JudgeConfig, parseJudges } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";

/** The judges of a run, or others that were asked for. @throws {InvalidInputError} when the text is no list of judges. */
export function decodeJudgesJson(json: string): readonly JudgeConfig[] {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refusal(`Cannot judge as the judges must be JSON: current value is ${json.slice(0, 200)}`, error);
  }
  const parsed = parseJudges(value);
  if (parsed.kind === "judges") return parsed.judges;
  throw refusal(parsed.problems.map((problem) => problem.message).join("; "));
}

function refusal(message: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(message, { path: "judge", allowed: "a list of judges" }, { cause });
}

/** What stands under `judge`; undefined where the text is no run file, which is then no list of judges. */
export function judgesIn(configJson: string): unknown {
  try {
    const config: unknown = parseJson(configJson);
    return typeof config === "object" && config !== null ? Reflect.get(config, "judge") : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
