/** Errors of the command line. Their messages are for people: they are printed without a stack. */

import { TerminalError } from "@hone/core";

/** The command cannot do what it was asked to do; the message says what to do instead. */
export class UsageError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("USAGE", message, options);
  }
}

/** A run failed or was cancelled, or its request was refused. */
export class RunFailedError extends TerminalError {
  constructor(message: string) {
    super("RUN_FAILED", message);
  }
}
