/** Errors of this service. */

import { RetryableError, TerminalError } from "@hone/core";

/** The rollout is not needed any more, as its run is over. */
export class RolloutCancelledError extends TerminalError {
  constructor(runId: string) {
    super("ROLLOUT_CANCELLED", `the rollout was cancelled, as its run ${runId} is over`);
  }
}

/** This process is stopping; the job goes back to the queue. */
export class ServiceStoppingError extends RetryableError {
  constructor() {
    super("SERVICE_STOPPING", "the rollout goes back to the queue, as the service is stopping");
  }
}

/** A job names something that this service cannot find or read. */
export class UnusableJobError extends TerminalError {
  constructor(problem: string, options?: ErrorOptions) {
    super("UNUSABLE_JOB", `the rollout cannot be run: ${problem}`, options);
  }
}
