/** Errors of sessions. Clients are told of them; how a rollout ends does not follow from them. */

import { nearest, RetryableError, TerminalError } from "@hone/core";

/** The attempt that the session belonged to is over. */
export class SessionOverError extends TerminalError {
  constructor(id: string) {
    super("SESSION_OVER", `Cannot answer as the session must be open: current value is ${id}, which is over`);
  }
}

/** An agent calls the model more often at once than a session takes. */
export class SessionBusyError extends RetryableError {
  constructor(maximum: number) {
    super(
      "SESSION_BUSY",
      `Cannot answer as a session takes at most ${maximum} calls at once: current value is ${maximum}`,
    );
  }
}

/** A call names a role that the run does not have. */
export class UnknownRoleError extends TerminalError {
  constructor(name: string, known: readonly string[]) {
    const meant = nearest(name, known);
    const hint = meant === undefined ? "" : ` (did you mean "${meant}"?)`;
    super(
      "UNKNOWN_ROLE",
      `Cannot answer as the model must be a role of the run, one of ${known.join(", ") || "none"}${hint}: current value is "${name}"`,
    );
  }
}

/** The run file does not let agents give rewards. */
export class RewardsNotTakenError extends TerminalError {
  constructor() {
    super(
      "REWARDS_NOT_TAKEN",
      'Cannot take a reward as the run file must say `agent.rewards: session`: current value is "none"',
    );
  }
}

/** A reward is for a turn that there is not. */
export class NoSuchTurnError extends TerminalError {
  constructor(turn: number | undefined) {
    const shown = turn ?? "no call so far";
    super("NO_SUCH_TURN", `Cannot take a reward as its turn must be recorded: current value is ${shown}`);
  }
}
