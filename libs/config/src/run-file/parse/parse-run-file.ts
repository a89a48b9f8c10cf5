/** From the text of a run file to a resolved configuration, or to everything that is wrong with it. */

import { ConfigError } from "../../errors.ts";
import { problemsOf } from "../../problems.ts";
import { runFileSchema } from "../schema/run-file-schema.ts";
import type { RunConfig } from "../schema/schema.ts";
import { knownKeys } from "./known-keys.ts";
import { parseYaml } from "./parse-text.ts";

/**
 * Parses YAML or JSON.
 * @throws {ConfigError} with line and column when the text is neither, or with every key that is wrong.
 */
export function parseRunFile(text: string): RunConfig {
  return resolveRunConfig(parseYaml(text, "the run file"));
}

/**
 * Checks a run file that is parsed already and fills in every default.
 * @throws {ConfigError} with every key that is wrong.
 */
export function resolveRunConfig(input: unknown): RunConfig {
  const result = runFileSchema.safeParse(input);
  if (result.success) return result.data;
  throw new ConfigError(
    "the run file",
    problemsOf(result.error.issues, input, (path) => knownKeys(runFileSchema, path, input)),
  );
}
