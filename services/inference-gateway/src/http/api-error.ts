/** Makes failures of the form that clients of the OpenAI API expect: `{ error: { message, type, param, code } }`. */

import { DeadlineError, describeError, InvalidInputError, RetryableError } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";
import { redactText } from "@hone/telemetry";
import { ChatTemplateError, EncodingLimitError } from "@hone/tokenizer";
import { EngineBusyError, ModelFailedError, ModelLoadingError, UnknownModelError } from "../domain/errors.ts";

export interface ApiErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** An answer other than 200. */
export interface ApiFailure {
  readonly status: 400 | 401 | 403 | 404 | 413 | 429 | 500 | 503 | 504;
  readonly body: ApiErrorBody;
  readonly headers: Readonly<Record<string, string>>;
}

/** Seconds after which a request to a full queue, or for a model that loads, should be tried again. */
const RETRY_AFTER_S = "1";
const RETRY_SOON = { "retry-after": RETRY_AFTER_S };
/** The official clients repeat requests that failed with 408, 409, 429 or 5xx unless the answer has this header. */
const RETRY_NEVER = { "x-should-retry": "false" };
/** The rest of the body was not read, so the connection cannot be used for another request. */
const BODY_UNREAD = { connection: "close" };

/** @returns undefined if this service failed, and the request is not the reason. */
export function failureOf(error: unknown): ApiFailure | undefined {
  if (error instanceof ApiRequestError) {
    const type = error.status === 401 ? "authentication_error" : INVALID;
    const headers = error.status === 413 ? BODY_UNREAD : {};
    return failure(error.status, error, type, error.param, error.apiCode, headers);
  }
  if (error instanceof UnknownModelError) return failure(404, error, INVALID, "model", "model_not_found");
  if (error instanceof InvalidInputError) return failure(400, error, INVALID, error.path);
  if (error instanceof ChatTemplateError) return failure(400, error, INVALID, "messages");
  if (error instanceof EncodingLimitError) return failure(400, error, INVALID, "model");
  if (error instanceof EngineBusyError) {
    return failure(429, error, "rate_limit_error", undefined, "engine_busy", RETRY_SOON);
  }
  if (error instanceof ModelLoadingError) {
    return failure(503, error, UNAVAILABLE, "model", "model_loading", RETRY_SOON);
  }
  if (error instanceof ModelFailedError) {
    return failure(503, error, UNAVAILABLE, "model", "model_failed", RETRY_NEVER);
  }
  if (error instanceof DeadlineError)
    return failure(504, error, "timeout", undefined, "deadline", RETRY_NEVER);
  if (error instanceof RetryableError) return failure(503, error, UNAVAILABLE);
  return undefined;
}

/** The answer when this service failed; its log has the details. */
export const INTERNAL_FAILURE: ApiFailure = failureFrom(
  500,
  "The service failed to answer; its log says why",
  "server_error",
);

const INVALID = "invalid_request_error";
const UNAVAILABLE = "service_unavailable";

function failure(
  status: ApiFailure["status"],
  error: Error,
  type: string,
  param?: string,
  code?: string,
  headers: ApiFailure["headers"] = {},
): ApiFailure {
  return failureFrom(status, describeError(error), type, param, code, headers);
}

export function failureFrom(
  status: ApiFailure["status"],
  message: string,
  type: string,
  param?: string,
  code?: string,
  headers: ApiFailure["headers"] = {},
): ApiFailure {
  return {
    status,
    headers,
    body: { error: { message: redactText(message), type, param: param ?? null, code: code ?? null } },
  };
}
