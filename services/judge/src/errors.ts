/** Errors of the judge. */

import { RetryableError, TerminalError } from "@hone/core";

/** A judge cannot score an episode, and trying again cannot help, as when the episode lacks what the judge reads. */
export class JudgeError extends TerminalError {
  /** Kind of the judge. */
  readonly judge: string;

  constructor(judge: string, message: string, options?: ErrorOptions) {
    super("JUDGE", message, options);
    this.judge = judge;
  }
}

/** The trainer has not published a state of the run. */
export class UnknownRunError extends RetryableError {
  constructor(runId: string) {
    super(
      "UNKNOWN_RUN",
      `the episode was not judged, as the trainer has published no state of its run ${runId.slice(0, 80)}`,
    );
  }
}
