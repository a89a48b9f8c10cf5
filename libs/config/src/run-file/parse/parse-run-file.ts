/** Parses the text of a run file into a configuration with every default, or throws all problems that it has. */

import { ConfigError } from "../../errors.ts";
import { problemsOf } from "../../problems.ts";
import { runFileSchema } from "../schema/run-file-schema.ts";
import type { RunConfig } from "../schema/schema.ts";
import { knownKeys } from "./known-keys.ts";
import { parseYaml } from "./parse-text.ts";

/**
 * Parses YAML or JSON.
 * @throws {ConfigError} with line and column when the text is neither, or else with all keys that are wrong.
 */
export function parseRunFile(text: string): RunConfig {
  return resolveRunConfig(parseYaml(text, "the run file"));
}

/**
 * Checks a run file that is already parsed, and fills in every default.
 * @throws {ConfigError} with all keys that are wrong.
 */
export function resolveRunConfig(input: unknown): RunConfig {
  const result = runFileSchema.safeParse(input);
  if (result.success) return result.data;
  throw new ConfigError(
    "the run file",
    problemsOf(result.error.issues, input, (path) => knownKeys(runFileSchema, path, input)),
  );
}
