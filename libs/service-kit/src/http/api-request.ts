/** Requests to an API that other people's clients use: checks a body by its schema, and says what is wrong with it. */

import { parseJson, TerminalError } from "@hone/core";
import type { z } from "zod";

/** What is wrong with the request itself. */
export type ApiRequestStatus = 400 | 401 | 403 | 404 | 413 | 429;

/** Details of an {@link ApiRequestError}. */
export interface ApiRequestErrorDetails {
  /** @default 400 */
  readonly status?: ApiRequestStatus;
  /** Name of the parameter; absent = the whole request. */
  readonly param?: string;
  /** For programs, such as `context_length_exceeded`. */
  readonly apiCode?: string;
}

/** A request that breaks a rule of the API. */
export class ApiRequestError extends TerminalError {
  readonly status: ApiRequestStatus;
  readonly param: string | undefined;
  readonly apiCode: string | undefined;

  constructor(message: string, details: ApiRequestErrorDetails = {}) {
    super("API_REQUEST", message);
    this.status = details.status ?? 400;
    this.param = details.param;
    this.apiCode = details.apiCode;
  }
}

/**
 * The value of a body, checked.
 * @throws {ApiRequestError} naming the first parameter that is wrong.
 */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiRequestError(`the body is not JSON: ${error.message}`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = deepest(parsed.error.issues[0]!);
  const param = issue.path.join(".");
  throw new ApiRequestError(
    `${param === "" ? "the body" : param} is not accepted: ${issue.message}`,
    param === "" ? {} : { param },
  );
}

/** For a union: the issue of the variant that fits furthest into the value, as that says most. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors
    .flat()
    .map((each) => deepest({ ...each, path: [...issue.path, ...each.path] } as z.core.$ZodIssue));
  const furthest = inner.sort((a, b) => b.path.length - a.path.length)[0];
  return furthest !== undefined && furthest.path.length > issue.path.length ? furthest : issue;
}

/** The token of an `Authorization: Bearer` header; undefined where there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
}
