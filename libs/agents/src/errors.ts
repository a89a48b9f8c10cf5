/**
 * Errors of this package. How a rollout ends follows from their types, never from their texts:
 * RetryableError = outside the agent, the attempt is made again; LimitReachedError = truncated; PolicyStaleError = stale;
 * anything else that an agent throws = agent_failed.
 */

import { RetryableError, TerminalError } from "@hone/core";

/** Something that the agent depends on, but that is no part of it, failed: an environment's server, a tool's network. */
export class InfrastructureError extends RetryableError {
  constructor(action: string, rule: string, value: string, options?: ErrorOptions) {
    super("INFRASTRUCTURE", `Cannot ${action} as ${rule}: current value is ${value}`, options);
  }
}

/** No replica served the policy for as long as a call may wait; costs no attempt. */
export class PolicyUnavailableError extends RetryableError {
  constructor(reason: string, waitedForMs: number, options?: ErrorOptions) {
    super(
      "POLICY_UNAVAILABLE",
      `Cannot generate as no replica of the policy serves (${reason}): current value is ${Math.round(waitedForMs)} ms of waiting`,
      options,
    );
  }
}

/** The engine refuses the request itself; asking again cannot help. */
export class PolicyRefusedError extends TerminalError {
  constructor(reason: string) {
    super("POLICY_REFUSED", `Cannot generate as the engine refuses the request: current value is ${reason}`);
  }
}

/** The policy versions that may generate for the rollout are gone for good. */
export class PolicyStaleError extends TerminalError {
  constructor(reason: string) {
    super("POLICY_STALE", `Cannot generate as the version asked for is gone: current value is ${reason}`);
  }
}

/** A model call would go beyond what the run allows one rollout; it ends as truncated. */
export class LimitReachedError extends TerminalError {
  readonly limit: "turns" | "context";

  constructor(limit: "turns" | "context", maximum: number) {
    super(
      "LIMIT_REACHED",
      limit === "turns"
        ? `Cannot call the model again as the rollout has its most turns: current value is ${maximum}`
        : `Cannot call the model again as the context is full: current value is ${maximum} tokens`,
    );
    this.limit = limit;
  }
}

/** Whoever asked the model for an answer waits for it no longer; no end of the rollout. */
export class ModelCallAbandonedError extends TerminalError {
  constructor(options?: ErrorOptions) {
    super(
      "MODEL_CALL_ABANDONED",
      "Cannot answer a call of the model as its caller must wait for it: current value is gone",
      options,
    );
  }
}

/** The attempt's time is over, waits for Hone's own parts not counted. */
export class AttemptTimedOutError extends TerminalError {
  constructor(deadlineMs: number) {
    super(
      "ATTEMPT_TIMED_OUT",
      `Cannot go on with the attempt as its time is over: current value is ${deadlineMs} ms`,
    );
  }
}

/** A dataset row lacks what its agent needs. The data's fault, not the model's: no attempt can mend it, and none is scored. */
export class BadRowError extends TerminalError {
  constructor(taskId: string, rule: string, value: string) {
    super("BAD_ROW", `Cannot run the row ${taskId} as ${rule}: current value is ${value}`);
  }
}

/** A name is registered twice. */
export class DuplicateNameError extends TerminalError {
  constructor(kind: string, name: string) {
    super("DUPLICATE_NAME", `Cannot register ${kind} as the name is taken: current value is "${name}"`);
  }
}

/** An agent sends the model something that is not text. */
export class UnsupportedMessageError extends TerminalError {
  constructor(what: string) {
    super(
      "UNSUPPORTED_MESSAGE",
      `Cannot show a message to the model as it must be text: current value is ${what}`,
    );
  }
}
