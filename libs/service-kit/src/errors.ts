/** Errors of the service kit. */

import { TerminalError } from "@hone/core";

/** A setting that this service needs is missing or wrong. The process ends with its own exit code: no restart helps. */
export class SettingError extends TerminalError {
  /** Name of the environment variable. */
  readonly variable: string;

  constructor(variable: string, rule: string, value: string, options?: ErrorOptions) {
    super(
      "INVALID_SETTING",
      `Cannot start the service as ${variable} ${rule}: current value is ${value}`,
      options,
    );
    this.variable = variable;
  }
}

/** The HTTP server could not take its address. */
export class ListenError extends TerminalError {
  constructor(host: string, port: number, options?: ErrorOptions) {
    super(
      "CANNOT_LISTEN",
      `Cannot listen for HTTP as the address must be free and ours: current value is ${host}:${port}`,
      options,
    );
  }
}

/** The service was told to stop: the reason of every signal that a stop aborts. */
export class StoppingError extends TerminalError {
  constructor(why: string) {
    super("STOPPING", `Cannot go on as the service stops: current value is ${why}`);
  }
}
