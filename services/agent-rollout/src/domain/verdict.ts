/** How an attempt ended, by the type of the error that ended it. */

import {
  type AgentResult,
  AttemptTimedOutError,
  BadRowError,
  EnvironmentRefusedError,
  LimitReachedError,
  PolicyRefusedError,
  PolicyStaleError,
  PolicyUnavailableError,
} from "@hone/agents";
import { describeError, Outcome, RetryableError } from "@hone/core";
import { EncodingLimitError } from "@hone/tokenizer";
import { RolloutCancelledError, ServiceStoppingError, UnusableJobError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";
import { EpisodeNotBegunError, EpisodeReturnedError } from "./swarm/errors.ts";

/** How an attempt ended, before its record is put together. */
export type Verdict =
  | { readonly kind: "ended"; readonly outcome: Outcome; readonly reason: string }
  | {
      readonly kind: "infra_failed";
      readonly reason: string;
      readonly isRetryable: boolean;
      /** How often this may happen to a rollout before it counts as a failed attempt. */
      readonly freeReturns: number;
    }
  | { readonly kind: "given_back"; readonly error: unknown };

/** For an agent that returned. @param failure the first failed call of the model, the environment or a tool. */
export function returnedVerdict(result: AgentResult, failure: unknown, job: RolloutJob): Verdict {
  if (failure !== undefined) return verdictOf(failure, job);
  if (result.isTruncated !== true) return { kind: "ended", outcome: Outcome.completed, reason: "" };
  return {
    kind: "ended",
    outcome: Outcome.truncated,
    reason: "the limit of turns or of the environment's steps was reached",
  };
}

/** For an attempt that an error ended. */
export function verdictOf(error: unknown, job: RolloutJob): Verdict {
  const reason = describeError(error);
  const ended = (outcome: Outcome): Verdict => ({ kind: "ended", outcome, reason });
  if (error instanceof AttemptTimedOutError) return ended(Outcome.timedOut);
  if (error instanceof LimitReachedError) return ended(Outcome.truncated);
  if (error instanceof PolicyStaleError) return ended(Outcome.stale);
  if (error instanceof RolloutCancelledError) return ended(Outcome.cancelled);
  if (error instanceof PolicyUnavailableError || error instanceof ServiceStoppingError) {
    return { kind: "given_back", error };
  }
  const isOfRun =
    error instanceof PolicyRefusedError ||
    error instanceof BadRowError ||
    error instanceof EnvironmentRefusedError ||
    error instanceof UnusableJobError ||
    error instanceof EpisodeNotBegunError ||
    error instanceof EncodingLimitError;
  if (isOfRun) return { kind: "infra_failed", reason, isRetryable: false, freeReturns: 0 };
  if (error instanceof RetryableError) {
    const freeReturns = error instanceof EpisodeReturnedError ? error.freeReturns : 0;
    return { kind: "infra_failed", reason, isRetryable: true, freeReturns };
  }
  return { kind: "ended", outcome: Outcome.agentFailed, reason: `${job.agentName}: ${reason}` };
}
