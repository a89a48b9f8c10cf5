/** Errors of the service kit. */

import { TerminalError } from "@hone/core";

/** A setting that this service needs is missing or wrong. The process ends with its own exit code: no restart helps. */
export class SettingError extends TerminalError {
  /** Name of the environment variable. */
  readonly variable: string;

  /**
   * @param rule what the variable must be, such as "must be a free port".
   * @param value what it is, such as "absent".
   */
  constructor(variable: string, rule: string, value: string, options?: ErrorOptions) {
    super("INVALID_SETTING", `the service cannot start: ${variable} ${rule}; it is ${value}`, options);
    this.variable = variable;
  }
}

/** The HTTP server could not take its address. */
export class ListenError extends TerminalError {
  constructor(host: string, port: number, options?: ErrorOptions) {
    super(
      "CANNOT_LISTEN",
      `HTTP cannot listen on ${host}:${port}: choose an address of this machine whose port is free`,
      options,
    );
  }
}

/** The service was told to stop: the reason of every signal that a stop aborts. */
export class StoppingError extends TerminalError {
  constructor(why: string) {
    super("STOPPING", `the service is stopping: ${why}`);
  }
}
