/** Errors of sessions. Clients see them; they do not decide how a rollout ends. */

import { nearest, RetryableError, TerminalError } from "@hone/core";

/** The attempt that the session belonged to is over. */
export class SessionOverError extends TerminalError {
  constructor(id: string) {
    super("SESSION_OVER", `the session ${id} is not open; it ended with its rollout's attempt`);
  }
}

/** An agent makes more calls at once than a session accepts. */
export class SessionBusyError extends RetryableError {
  constructor(maximum: number) {
    super(
      "SESSION_BUSY",
      `the session has ${maximum} calls at once, which is the most that it accepts; wait for one to end`,
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
      `the model "${name}" is not a role of the run; its roles are ${known.join(", ") || "none"}${hint}`,
    );
  }
}

/** The run file does not allow agents to give rewards. */
export class RewardsNotTakenError extends TerminalError {
  constructor() {
    super(
      "REWARDS_NOT_TAKEN",
      "rewards from the agent are not accepted; set `agent.rewards: session` in the run file to allow them",
    );
  }
}

/** A reward is for a turn that does not exist. */
export class NoSuchTurnError extends TerminalError {
  constructor(turn: number | undefined) {
    super(
      "NO_SUCH_TURN",
      turn === undefined
        ? "the reward is for the latest turn, but the session has none yet"
        : `the reward is for turn ${turn}, which the session does not have`,
    );
  }
}

/** A reward that comes after the attempt is not taken. */
export class LaterRewardRefusedError extends TerminalError {
  readonly status: 400 | 401 | 403 | 409;
  /** For programs, such as `reward_stands`. */
  readonly apiCode: string;

  constructor(message: string, status: LaterRewardRefusedError["status"], apiCode: string) {
    super("LATER_REWARD_REFUSED", message);
    this.status = status;
    this.apiCode = apiCode;
  }
}
