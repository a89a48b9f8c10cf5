/** Parses a source of tasks that is sent without its run file, with the request for a batch. */

import { ConfigError } from "../../errors.ts";
import { problemsOf } from "../../problems.ts";
import { type TaskSource, taskSourceSchema } from "../schema/sources.ts";
import { knownKeys } from "./known-keys.ts";

/**
 * Checks a source and fills in every default.
 * @throws {ConfigError} with keys below the source, such as `seeds.to`.
 */
export function parseTaskSource(value: unknown): TaskSource {
  const parsed = taskSourceSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    "a dataset source",
    problemsOf(parsed.error.issues, value, (path) => knownKeys(taskSourceSchema, path, value)),
  );
}
