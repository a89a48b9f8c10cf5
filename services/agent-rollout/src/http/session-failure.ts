/** Translates errors into the failures that a session's client sees. */

import {
  AttemptTimedOutError,
  LimitReachedError,
  ModelCallAbandonedError,
  PolicyRefusedError,
  PolicyStaleError,
} from "@hone/agents";
import { describeError, RetryableError } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";
import { redactText } from "@hone/telemetry";
import { ChatTemplateError, EncodingLimitError } from "@hone/tokenizer";
import {
  LaterRewardRefusedError,
  NoSuchTurnError,
  RewardsNotTakenError,
  SessionBusyError,
  SessionOverError,
  UnknownRoleError,
} from "../domain/sessions/errors.ts";
import type { SessionFailure } from "../domain/sessions/session-call.ts";

/** @returns undefined for an error of this service itself. */
export function failureOf(error: unknown): SessionFailure | undefined {
  if (error instanceof ApiRequestError) return failure(error.status, error, error.apiCode, error.param);
  if (error instanceof ChatTemplateError || error instanceof EncodingLimitError) {
    return failure(400, error, undefined, "messages");
  }
  if (error instanceof LimitReachedError) {
    const isContext = error.limit === "context";
    return failure(400, error, isContext ? "context_length_exceeded" : "turn_limit_reached", "messages");
  }
  if (error instanceof SessionOverError) return failure(404, error, "session_over");
  if (error instanceof SessionBusyError) return failure(429, error, "session_busy");
  if (error instanceof UnknownRoleError) return failure(404, error, "model_not_found", "model");
  if (error instanceof RewardsNotTakenError) return failure(403, error, "rewards_not_taken");
  if (error instanceof LaterRewardRefusedError) return failure(error.status, error, error.apiCode);
  if (error instanceof NoSuchTurnError) return failure(400, error, undefined, "turn");
  if (error instanceof AttemptTimedOutError) return failure(504, error, "deadline");
  if (error instanceof PolicyRefusedError) return failure(400, error, "policy_refused");
  // These end the rollout, whatever the agent does.
  if (error instanceof PolicyStaleError || error instanceof ModelCallAbandonedError) {
    return failure(404, error, "session_over");
  }
  if (error instanceof RetryableError) return failure(503, error, "unavailable");
  return undefined;
}

/** The failure for an error of this service itself; its log has the details. */
export const INTERNAL_FAILURE: SessionFailure = {
  status: 500,
  message: "the service failed; its log says why",
  param: undefined,
  code: undefined,
};

function failure(
  status: SessionFailure["status"],
  error: Error,
  code?: string,
  param?: string,
): SessionFailure {
  return { status, message: redactText(describeError(error)), param, code };
}
