/** Errors of the command line. Their messages are for people: they are printed without a stack. */

import { TerminalError } from "@hone/core";

/** What was asked for cannot be done as things are; the message says what to do instead. */
export class UsageError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("USAGE", message, options);
  }
}

/** A run ended otherwise than completed, or its request was refused. */
export class RunFailedError extends TerminalError {
  constructor(message: string) {
    super("RUN_FAILED", message);
  }
}
