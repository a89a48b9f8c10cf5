/** Errors of the trainer. */

import { TerminalError } from "@hone/core";

/** Another process owns the run now; this one must not touch it any more. */
export class OwnershipLostError extends TerminalError {
  readonly runId: string;

  constructor(runId: string, epoch: number) {
    super(
      "OWNERSHIP_LOST",
      `Cannot go on with ${runId} as another process owns it: current value is epoch ${epoch}, which is over`,
    );
    this.runId = runId;
  }
}

/** Someone asked for the run to end. Reason of the signal that stops its loop. */
export class RunCancelledError extends TerminalError {
  constructor(runId: string) {
    super(
      "RUN_CANCELLED",
      `Cannot go on with ${runId} as its cancellation was asked for: current value is cancelled`,
    );
  }
}

/** The process stops; the run goes on in the next one. Reason of the signal that stops its loop. */
export class TrainerStoppingError extends TerminalError {
  constructor() {
    super("TRAINER_STOPPING", "Cannot go on as the trainer is stopping: current value is stopping");
  }
}

/** A service answered that it cannot do its part of this run, ever. */
export class RefusedByServiceError extends TerminalError {
  constructor(service: string, reason: string) {
    super("REFUSED_BY_SERVICE", `Cannot go on as ${service} refuses: current value is ${reason}`);
  }
}
