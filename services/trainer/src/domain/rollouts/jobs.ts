/**
 * Tasks and the jobs that rollouts are made by, as the run needs them from outside.
 *
 * A failure that passes by itself (a bus, a database or a service that is away) is thrown as a RetryableError; the
 * loop waits for it and says so in the run's status. Everything else ends the attempt at the run.
 */

import type { Endpoint } from "@hone/config";
import type { Slot } from "@hone/core";
import type { SamplingParameters } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import type { RunRecord } from "../run/run-record.ts";

/** One dataset row, or an environment with its seed; the trainer passes it on unread. */
export interface Task {
  readonly id: string;
  readonly environment: string;
  readonly environmentSeed: bigint;
  readonly environmentConfigJson: string;
  readonly rowJson: string;
}

/** Consecutive tasks of one split. */
export interface TaskRequest {
  /** The split's part of the run file as JSON. */
  readonly sourceJson: string;
  readonly runSeed: number;
  readonly cursor: number;
  readonly count: number;
  readonly isShuffled: boolean;
}

export interface TaskSource {
  /** @returns the tasks and how many distinct ones the source has. */
  batch(request: TaskRequest, signal: AbortSignal): Promise<{ tasks: Task[]; size: number }>;
}

/** What varies from job to job of one run. */
export interface Job {
  readonly slot: Slot;
  readonly task: Task;
  /** Position of the task in its split's order. */
  readonly cursor: number;
  readonly sampling: SamplingParameters;
  /** Scripted policy that takes the model's place. */
  readonly scriptedPolicy?: string;
  /** A model outside that takes its place. */
  readonly endpoint?: Endpoint;
  readonly lowestVersion: number;
  readonly highestVersion: number;
}

export interface JobQueue {
  /**
   * Stores a job.
   * @returns false when the queue saw a job of this slot lately, and of this repetition: nothing was stored.
   * @throws {RetryableError} when the bus is away, or at once when the queue holds as many jobs of the run as it takes.
   */
  publish(run: RunRecord, job: Job, options: PublishJobOptions): Promise<boolean>;
  /** Jobs of all runs that nobody has taken. */
  waitingJobs(): Promise<number>;
  /** Runs of which a job is stored. */
  runs(): Promise<string[]>;
  /** Drops the run's jobs that nobody has taken. */
  purge(runId: string): Promise<void>;
}

export interface PublishJobOptions {
  /** 0 at first; each higher one makes a queue take a slot that it has seen. */
  readonly repetition: number;
  readonly trace: Context;
  readonly signal: AbortSignal;
}
