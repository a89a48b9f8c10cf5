/** Errors of this service. */

import { RetryableError, TerminalError } from "@hone/core";

/** The run asks for the rollout no longer. */
export class RolloutCancelledError extends TerminalError {
  constructor(runId: string) {
    super("ROLLOUT_CANCELLED", `Cannot go on with a rollout as its run is over: current value is ${runId}`);
  }
}

/** This process is stopping; the job goes back to the queue. */
export class ServiceStoppingError extends RetryableError {
  constructor() {
    super(
      "SERVICE_STOPPING",
      "Cannot go on with a rollout as the service is stopping: current value is stopping",
    );
  }
}

/** A job names something that this service cannot find or read. */
export class UnusableJobError extends TerminalError {
  constructor(rule: string, value: string, options?: ErrorOptions) {
    super("UNUSABLE_JOB", `Cannot run a rollout as ${rule}: current value is ${value}`, options);
  }
}
