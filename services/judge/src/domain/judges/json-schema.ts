/** The judge `json_schema`: whether the answer is JSON that fits a schema. */

import { Validator } from "@cfworker/json-schema";
import { parseJson } from "@hone/core";
import { lastFenced } from "../fenced.ts";
import type { Judge } from "../judge.ts";
import { solutionOf } from "../judged-episode.ts";
import type { ConfigOf } from "../registry.ts";

/** @throws {Error} when the schema is none that can be checked. */
export function jsonSchemaJudge({ schema }: ConfigOf<"json_schema">): Judge {
  const validator = new Validator(schema, "2020-12");
  // What it refers to is resolved with the first value: a broken reference is found now.
  validator.validate(null);
  return function judgeJsonSchema(episode) {
    const found = jsonIn(solutionOf(episode));
    return found !== undefined && validator.validate(found.value).valid ? 1 : 0;
  };
}

/** The whole text, or else the last fenced block; undefined where neither is JSON. */
function jsonIn(text: string): { readonly value: unknown } | undefined {
  return parse(text) ?? parse(lastFenced(text));
}

function parse(text: string | undefined): { readonly value: unknown } | undefined {
  if (text === undefined) return undefined;
  try {
    return { value: parseJson(text) };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
