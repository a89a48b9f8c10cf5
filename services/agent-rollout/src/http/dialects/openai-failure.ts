/** Failures in the form of OpenAI's APIs. */

import type { SessionFailure } from "../../domain/sessions/session-call.ts";

const TYPES: Readonly<Record<SessionFailure["status"], string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "invalid_request_error",
  409: "invalid_request_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
  500: "server_error",
  503: "service_unavailable",
  504: "timeout",
};

export function openaiFailureBody({ status, message, param, code }: SessionFailure) {
  return { error: { message, type: TYPES[status], param: param ?? null, code: code ?? null } };
}
