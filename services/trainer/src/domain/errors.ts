/** Errors of the trainer. */

import { RetryableError, TerminalError } from "@hone/core";
import type { OutcomeTrouble } from "@hone/rl";

/** Another process owns the run now, and this one must not touch it any more. */
export class OwnershipLostError extends TerminalError {
  readonly runId: string;

  constructor(runId: string, epoch: number) {
    super("OWNERSHIP_LOST", `another process owns run ${runId} now: the epoch ${epoch} of this one is over`);
    this.runId = runId;
  }
}

/** Somebody asked for the run to be cancelled. It is the reason of the signal that stops the run's loop. */
export class RunCancelledError extends TerminalError {
  constructor(runId: string) {
    super("RUN_CANCELLED", `run ${runId} is being cancelled`);
  }
}

/** The process stops, and the run goes on in the next one. It is the reason of the signal that stops the run's loop. */
export class TrainerStoppingError extends TerminalError {
  constructor() {
    super("TRAINER_STOPPING", "the trainer is stopping");
  }
}

/** The database's row of a run is not one that the trainer could have written. */
export class BrokenRowError extends TerminalError {
  constructor(runId: string, rule: string, value: string, options?: ErrorOptions) {
    super("BROKEN_ROW", `the database's row of run ${runId} is broken: ${rule}, but it is ${value}`, options);
  }
}

/** All rollouts of a step, an evaluation or a warm start failed for one reason: another try would fail in the same way. */
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
      `${what} cannot be replayed: ${missing} of its ${total} rollouts are no longer stored`,
    );
  }
}

/** The stream of episodes is full while the run keeps steps in it that it would replay: once replayed, they are dropped. */
export class EpisodesFullError extends RetryableError {
  constructor(what: string, keptAfter: number | undefined) {
    super(
      "EPISODES_FULL",
      `EPISODES is full before ${what} is complete: the steps after version ${keptAfter}, which it keeps for a restart, are trained once more into a state that needs none of them`,
    );
  }
}

/** A service answered that it can never do its part of this run. */
export class RefusedByServiceError extends TerminalError {
  constructor(service: string, reason: string) {
    super("REFUSED_BY_SERVICE", `${service} refuses its part of the run: ${reason}`);
  }
}

/** What somebody must do about a folder that the operating system refuses, by its code. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: "free some room on its disk",
  EDQUOT: "free some room, or raise the quota of the trainer's account",
  EACCES: "give the trainer's account the right to read and write there",
  EPERM: "give the trainer's account the right to read and write there",
  EROFS: "mount its file system for writing",
  EMFILE: "let the trainer open more files",
  ENFILE: "let this machine open more files",
};

/** The operating system refuses a folder of a run: there is no room or no right, or the disk fails. It works again once somebody has mended that. */
export class FolderRefusedError extends RetryableError {
  readonly folder: string;

  constructor(folder: string, code: string, options?: ErrorOptions) {
    const remedy = REMEDIES[code] ?? "look at its disk, or at the server that it is mounted from";
    super(
      "FOLDER_REFUSED",
      `The folder ${folder} cannot be used now (${code}); ${remedy}, and the run goes on by itself`,
      options,
    );
    this.folder = folder;
  }
}

/** A file that is kept of a step is not one that the trainer could have written. */
export class BrokenKeptStepError extends TerminalError {
  constructor(file: string, reason: string, options?: ErrorOptions) {
    super("BROKEN_KEPT_STEP", `what was kept of a step in ${file} cannot be read: ${reason}`, options);
  }
}

/** The record of a kept state is missing, or not one that the trainer could have written. */
export class BrokenKeptStateError extends TerminalError {
  constructor(file: string, reason: string, options?: ErrorOptions) {
    super(
      "BROKEN_KEPT_STATE",
      `the record of a kept state, ${file}, cannot be read: ${reason}. Put its folder back from a copy, or replay from a step after another kept state.`,
      options,
    );
  }
}
