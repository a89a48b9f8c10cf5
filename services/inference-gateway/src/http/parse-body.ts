/** Bodies of requests, checked by a schema; the first parameter that is wrong is named. */

import { parseJson } from "@hone/core";
import type { z } from "zod";
import { ApiRequestError } from "./api-error.ts";

/** A context of 250,000 tokens of English; reading and tokenizing it holds up others for some tenths of a second. */
export const MAX_BODY_BYTES = 1_048_576;
/** @throws {ApiRequestError} naming the parameter. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiRequestError(`Cannot answer as the body must be JSON: current value is ${error.message}`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = deepest(parsed.error.issues[0]!);
  const param = issue.path.join(".");
  throw new ApiRequestError(
    `Cannot answer as ${param === "" ? "the body" : param} breaks its rule: ${issue.message}`,
    param === "" ? {} : { param },
  );
}

/** Of a union, the variant that came furthest tells most. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors
    .flat()
    .map((each) => deepest({ ...each, path: [...issue.path, ...each.path] } as z.core.$ZodIssue));
  const furthest = inner.sort((a, b) => b.path.length - a.path.length)[0];
  return furthest !== undefined && furthest.path.length > issue.path.length ? furthest : issue;
}
