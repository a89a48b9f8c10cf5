/** Errors of the trainer. */

import { RetryableError, TerminalError } from "@hone/core";
import type { OutcomeTrouble } from "@hone/rl";

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

/** What the database holds of a run is no run. */
export class BrokenRowError extends TerminalError {
  constructor(runId: string, rule: string, value: string, options?: ErrorOptions) {
    super("BROKEN_ROW", `Cannot go on with ${runId} as ${rule}: current value is ${value}`, options);
  }
}

/** All rollouts of a step, an evaluation or a warm start failed for one reason: another try would make the same of them. */
export class UniformFailureError extends TerminalError {
  constructor(madeFor: string, { outcome, count, reason }: OutcomeTrouble) {
    const said = reason === "" ? "none of them says why" : `for one reason: ${reason}`;
    super(
      "UNIFORM_FAILURE",
      `all ${count} rollouts of ${madeFor} ended as ${outcome}, ${said} (rollout.onUniformFailure: continue lets such rollouts pass)`,
    );
  }
}

/** The stream no longer holds the rollouts of a step that must be replayed. */
export class LostRolloutsError extends TerminalError {
  constructor(what: string, missing: number, total: number) {
    super(
      "LOST_ROLLOUTS",
      `Cannot replay ${what} as its ${total} rollouts must be stored: current value is ${missing} missing`,
    );
  }
}

/** A service answered that it cannot do its part of this run, ever. */
export class RefusedByServiceError extends TerminalError {
  constructor(service: string, reason: string) {
    super("REFUSED_BY_SERVICE", `Cannot go on as ${service} refuses: current value is ${reason}`);
  }
}

/** A folder cannot be written as its disk, or a quota, is full. It works again when somebody makes room. */
export class DiskFullError extends RetryableError {
  readonly folder: string;

  constructor(folder: string, options?: ErrorOptions) {
    super(
      "DISK_FULL",
      `Cannot write ${folder} as its disk must have room: current value is none left (free some, and the run goes on by itself)`,
      options,
    );
    this.folder = folder;
  }
}
