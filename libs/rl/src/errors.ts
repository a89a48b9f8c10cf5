/** Errors of the RL library. */

import { TerminalError } from "@hone/core";

/** A rollout's record contradicts itself, so training on it would be wrong. */
export class BrokenRecordError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("BROKEN_RECORD", message, options);
  }
}
