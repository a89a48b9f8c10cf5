/**
 * Errors of this package. How a rollout ends depends on the type of the error, never on its text: after a RetryableError, whose
 * cause is outside the agent, the attempt is made again; LimitReachedError ends the rollout as truncated, PolicyStaleError as
 * stale, and any other error that an agent throws as agent_failed.
 */

import { RetryableError, TerminalError } from "@hone/core";

/** Something outside of the agent failed, such as an environment's server or a tool's network. */
export class InfrastructureError extends RetryableError {
  /**
   * @param action what could not be done, such as "look it up".
   * @param problem what is wrong, such as "the server does not answer".
   * @param detail the value or the error that was found.
   */
  constructor(action: string, problem: string, detail: string, options?: ErrorOptions) {
    super("INFRASTRUCTURE", `Cannot ${action}: ${problem} (${detail})`, options);
  }
}

/** No replica was available for as long as a call may wait. This does not count as an attempt. */
export class PolicyUnavailableError extends RetryableError {
  constructor(reason: string, waitedForMs: number, options?: ErrorOptions) {
    super(
      "POLICY_UNAVAILABLE",
      `Cannot generate: no replica of the policy answered within ${Math.round(waitedForMs)} ms (${reason})`,
      options,
    );
  }
}

/** An environment refuses the task itself, such as a server that does not know it; a fresh environment would refuse it too. */
export class EnvironmentRefusedError extends TerminalError {
  /** @param reason what was refused and why, and what to correct. */
  constructor(reason: string, options?: ErrorOptions) {
    super("ENVIRONMENT_REFUSED", `the environment cannot give this task: ${reason}`, options);
  }
}

/** The engine refuses the request itself; repeating it cannot help. */
export class PolicyRefusedError extends TerminalError {
  constructor(reason: string) {
    super("POLICY_REFUSED", `Cannot generate: the engine refused the request (${reason})`);
  }
}

/** The policy versions that may generate for the rollout do not exist any more. */
export class PolicyStaleError extends TerminalError {
  constructor(reason: string) {
    super("POLICY_STALE", `Cannot generate: the requested version of the policy is gone (${reason})`);
  }
}

/** A model call would go beyond what the run allows one rollout; it ends as truncated. */
export class LimitReachedError extends TerminalError {
  readonly limit: "turns" | "context";

  constructor(limit: "turns" | "context", maximum: number) {
    super(
      "LIMIT_REACHED",
      limit === "turns"
        ? `Cannot call the model again: the rollout has reached its limit of ${maximum} turns`
        : `Cannot call the model again: the context is full (${maximum} tokens)`,
    );
    this.limit = limit;
  }
}

/** The caller of the model has stopped waiting for the answer. This does not end the rollout. */
export class ModelCallAbandonedError extends TerminalError {
  constructor(options?: ErrorOptions) {
    super(
      "MODEL_CALL_ABANDONED",
      "Cannot answer a call of the model: its caller has stopped waiting",
      options,
    );
  }
}

/** The attempt's time is over. Waiting for Hone's own services does not count. */
export class AttemptTimedOutError extends TerminalError {
  constructor(deadlineMs: number) {
    super("ATTEMPT_TIMED_OUT", `The attempt took longer than its limit of ${deadlineMs} ms`);
  }
}

/** A dataset row lacks something that its agent needs. No further attempt can help, and the rollout is not scored. */
export class BadRowError extends TerminalError {
  /** @param problem a sentence that says what is wrong, with the value, and what is allowed. */
  constructor(taskId: string, problem: string) {
    super("BAD_ROW", `Cannot run the row ${taskId}: ${problem}`);
  }
}

/** A name is registered twice. */
export class DuplicateNameError extends TerminalError {
  constructor(kind: string, name: string) {
    super("DUPLICATE_NAME", `Cannot register the ${kind} "${name}": this name is taken`);
  }
}

/** An agent sends the model something that is not text. */
export class UnsupportedMessageError extends TerminalError {
  constructor(what: string) {
    super("UNSUPPORTED_MESSAGE", `Cannot show a message to the model: it must be text, but is ${what}`);
  }
}
