/** What can go wrong with the hub. */
import { RetryableError, TerminalError } from "@hone/core";

/** The hub has no such repository for this caller, or not one that can be used. Trying again cannot help. */
export class HubRefusedError extends TerminalError {
  readonly model: string;

  constructor(model: string, rule: string, current: string, options?: ErrorOptions) {
    super("HUB_REFUSED", `Cannot fetch ${model} as ${rule}: current value is ${current}`, options);
    this.model = model;
  }
}

/** The hub or the way to it failed; what was fetched is kept, and the next try goes on from there. */
export class HubUnavailableError extends RetryableError {
  readonly model: string;

  constructor(model: string, current: string, options?: ErrorOptions) {
    super(
      "HUB_UNAVAILABLE",
      `Cannot fetch ${model} as the hub must answer: current value is ${current}`,
      options,
    );
    this.model = model;
  }
}
