/** Errors of the judge. */

import { TerminalError } from "@hone/core";

/** A judge cannot score an episode, and trying again cannot help, as when the episode lacks what the judge reads. */
export class JudgeError extends TerminalError {
  /** Kind of the judge. */
  readonly judge: string;

  constructor(judge: string, message: string, options?: ErrorOptions) {
    super("JUDGE", message, options);
    this.judge = judge;
  }
}
