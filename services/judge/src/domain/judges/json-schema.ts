/** The judge `json_schema`: whether the answer is JSON that fits a schema. */

import { BoundedSchema } from "@hone/config";
import { parseJson } from "@hone/core";
import { lastFenced } from "../fenced.ts";
import { inTime } from "../in-time.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";

/** @throws {Error} when the schema cannot be used. */
export function jsonSchemaJudge({ kind, schema }: ConfigOf<"json_schema">): Judge {
  const checked = new BoundedSchema(schema, `the judge ${kind}`);
  return function judgeJsonSchema(episode) {
    const found = jsonIn(solutionOf(episode));
    return found !== undefined && inTime(kind, () => checked.problemsOf(found.value)).length === 0 ? 1 : 0;
  };
}

/** The JSON value of the whole text, or else of its last fenced block; undefined where neither is JSON. */
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
