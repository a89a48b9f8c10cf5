/**
 * The format that a call demands of its answer: JSON, or JSON that fits a schema.
 *
 * Sampling is never constrained, so the format is told to the model as text (`demands.ts`), and whether the answer has it is
 * found out afterwards.
 */

import { problemIn } from "@hone/agents";
import { BoundedSchema, TooSlowError } from "@hone/config";
import { describeError, parseJson } from "@hone/core";

export interface ResponseFormat {
  /** Undefined = any JSON object. */
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  /** What the client says about the schema, for the model; may be empty. */
  readonly description: string;
}

/** A longer schema would fill the model's context. */
const MAX_SCHEMA_CHARACTERS = 65_536;
/** More schemas than agents use at once. */
const CACHED_SCHEMAS = 64;

/** Schemas by their JSON, so that each is prepared once and one that is too slow is found to be so once. */
const prepared = new Map<string, BoundedSchema>();

/** @returns why values cannot be checked by a schema; undefined = they can. */
export function problemOfSchema(schema: Readonly<Record<string, unknown>>): string | undefined {
  const { length } = JSON.stringify(schema);
  if (length > MAX_SCHEMA_CHARACTERS) {
    return `it has ${length} characters, and the model can be told at most ${MAX_SCHEMA_CHARACTERS}`;
  }
  try {
    preparedOf(schema);
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

/** @returns what is wrong with an answer's text; undefined if it has the format. */
export function problemOfText({ schema }: ResponseFormat, text: string): string | undefined {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return "the answer is no JSON";
  }
  if (schema === undefined) {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? undefined : "the answer is no JSON object";
  }
  try {
    const problem = problemIn(preparedOf(schema), value);
    return problem === undefined ? undefined : `the answer does not fit the schema: ${problem}`;
  } catch (error) {
    if (!(error instanceof TooSlowError)) throw error;
    return "the answer could not be checked in time";
  }
}

/** @throws {Error} when values cannot be checked by the schema. */
function preparedOf(schema: Readonly<Record<string, unknown>>): BoundedSchema {
  const key = JSON.stringify(schema);
  const known = prepared.get(key) ?? new BoundedSchema(schema, "the response format");
  // The one that was used last comes last.
  prepared.delete(key);
  prepared.set(key, known);
  const oldest = prepared.keys().next();
  if (prepared.size > CACHED_SCHEMAS && oldest.done !== true) prepared.delete(oldest.value);
  return known;
}
