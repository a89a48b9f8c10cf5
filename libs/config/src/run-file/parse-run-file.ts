/** From the text of a run file to a resolved configuration, or to everything that is wrong with it. */

import { LineCounter, parseDocument } from "yaml";
import { ConfigError } from "../errors.ts";
import { problemsOf } from "../problems.ts";
import { knownKeys } from "./known-keys.ts";
import { type RunConfig, runFileSchema } from "./schema.ts";

/** A run file holds a configuration, perhaps with a tokenizer inlined; more than this is something else. */
export const MAX_RUN_FILE_BYTES = 16 * 1024 * 1024;

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

/**
 * Parses one YAML or JSON document.
 * @param source named in errors, such as "agent.yaml".
 * @throws {ConfigError} with line and column.
 */
export function parseYaml(text: string, source: string): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_RUN_FILE_BYTES) {
    throw new ConfigError(source, [wholeFile(`at most ${MAX_RUN_FILE_BYTES} bytes`, `${bytes} bytes`)]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw new ConfigError(source, [
      wholeFile("valid YAML or JSON", `line ${line}, column ${col}: ${error.message.split("\n")[0]}`),
    ]);
  }
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw new ConfigError(source, [wholeFile("YAML without excessive aliases", String(cause))], { cause });
  }
}

function wholeFile(allowed: string, found: string) {
  return {
    key: "",
    value: undefined,
    allowed,
    message: `Cannot accept the file as it must be ${allowed}: current value is ${found}`,
  };
}
