/** Errors of episodes that clients play. */

import { RetryableError, TerminalError } from "@hone/core";

/** Why an episode is over for its client. Clients see it as the code of an error. */
export const EpisodeOver = {
  /** The client gave no sign of life for too long. */
  leaseExpired: "lease_expired",
  /** The client gave it back. */
  aborted: "aborted",
  /** The attempt's time was used up. */
  timedOut: "timed_out",
  /** Its run is over. */
  runOver: "run_over",
  /** It goes to another process, as this one stops. */
  givenBack: "given_back",
  /** Its rollout is stored already, by an attempt in a process that died. */
  storedBefore: "stored_before",
  /** Something failed that ended the attempt: the message says what. */
  attemptEnded: "attempt_ended",
} as const;
export type EpisodeOver = (typeof EpisodeOver)[keyof typeof EpisodeOver];

/** The client's episode is over, and nothing that it sends for it counts. */
export class EpisodeOverError extends TerminalError {
  readonly why: EpisodeOver;

  constructor(why: EpisodeOver, reason: string) {
    super("EPISODE_OVER", `the episode is over and nothing more is counted for it: ${reason}`);
    this.why = why;
  }
}

/** The client has ended the episode before, with another report. */
export class EpisodeEndedError extends TerminalError {
  constructor() {
    super(
      "EPISODE_ENDED",
      "the episode has been ended before; only the same report may be sent again, and a further episode needs a claim of its own",
    );
  }
}

/** No episode of this process has the id. */
export class UnknownEpisodeError extends TerminalError {
  constructor(id: string) {
    super(
      "UNKNOWN_EPISODE",
      `the episode ${id} is not known; it is over, or the process that lent it has ended since`,
    );
  }
}

/** More clients wait for an episode than a process accepts. */
export class TooManyWaitingError extends RetryableError {
  constructor(maximum: number) {
    super(
      "TOO_MANY_WAITING",
      `${maximum} clients wait for an episode, which is the most that this process accepts; try again in a while`,
    );
  }
}

/** A client did not play the episode to its end; the attempt is repeated for another one. */
export class EpisodeReturnedError extends RetryableError {
  /** How often this may happen to a rollout before it counts as a failed attempt. */
  readonly freeReturns: number;

  constructor(reason: string, freeReturns: number) {
    super("EPISODE_RETURNED", reason);
    this.freeReturns = freeReturns;
  }
}

/** Nobody began the episode in time. */
export class EpisodeNotBegunError extends TerminalError {
  constructor(waitedMs: number) {
    super("EPISODE_NOT_BEGUN", `no client began the episode within ${waitedMs} ms`);
  }
}

/** The client reports that its agent failed. */
export class EpisodeFailedError extends TerminalError {
  constructor(reason: string) {
    super("EPISODE_FAILED", reason === "" ? "its client says that the agent failed" : reason);
  }
}
