/** The judges that a file names: a run file's, or a list alone. */

import { readFile } from "node:fs/promises";
import { ConfigError, type JudgeConfig, parseJudges, parseYaml } from "@hone/config";
import { UsageError } from "../errors.ts";

/**
 * @throws {UsageError} when the file cannot be read.
 * @throws {ConfigError} with everything that is wrong with its judges.
 */
export async function readJudges(file: string): Promise<readonly JudgeConfig[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`Cannot read judges as their file must be there: current value is ${file}`, {
      cause,
    });
  }
  const value = parseYaml(text, file);
  const list: unknown =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Reflect.get(value, "judge")
      : value;
  const parsed = parseJudges(list);
  if (parsed.kind === "problems") throw new ConfigError(file, parsed.problems);
  if (parsed.judges.some(({ kind }) => kind === "group")) {
    throw new UsageError(
      `Cannot score answers one by one as each judge must read one alone: current value is ${file} with "group", which compares those of a run's group`,
    );
  }
  return parsed.judges;
}
