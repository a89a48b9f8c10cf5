/** What the judge throws. */

import { TerminalError } from "@hone/core";

/** An episode cannot be scored by a judge, now or ever: it lacks what the judge reads. */
export class JudgeError extends TerminalError {
  /** Kind of the judge. */
  readonly judge: string;

  constructor(judge: string, message: string, options?: ErrorOptions) {
    super("JUDGE", message, options);
    this.judge = judge;
  }
}
