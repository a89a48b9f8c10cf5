/** Errors of the hub. */
import { RetryableError, TerminalError } from "@hone/core";

/** The hub has no such repository for this caller, or one that cannot be used. Trying again cannot help. */
export class HubRefusedError extends TerminalError {
  readonly model: string;

  /** @param problem a sentence that says what is wrong, and what to do. */
  constructor(model: string, problem: string, options?: ErrorOptions) {
    super("HUB_REFUSED", `Cannot fetch ${model}: ${problem}`, options);
    this.model = model;
  }
}

/** The hub or the connection to it failed. Downloaded parts are kept, and the next attempt continues from there. */
export class HubUnavailableError extends RetryableError {
  readonly model: string;

  constructor(model: string, current: string, options?: ErrorOptions) {
    super("HUB_UNAVAILABLE", `Cannot fetch ${model}: the hub is not available (${current})`, options);
    this.model = model;
  }
}
