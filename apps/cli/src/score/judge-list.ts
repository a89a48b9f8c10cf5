/** Reads judges from a run file, or from a file that holds only their list. */

import { readFile } from "node:fs/promises";
import { ConfigError, type JudgeConfig, parseJudges, parseYaml } from "@hone/config";
import { UsageError } from "../errors.ts";

/**
 * @throws {UsageError} when the file cannot be read.
 * @throws {ConfigError} that lists everything that is wrong with its judges.
 */
export async function readJudges(file: string): Promise<readonly JudgeConfig[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`the file of judges ${file} cannot be read`, { cause });
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
      `the judge "group" in ${file} compares the answers of a group and cannot score single answers; leave it out`,
    );
  }
  return parsed.judges;
}
