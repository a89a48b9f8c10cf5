/**
 * The interfaces through which a run gets its tasks and publishes the jobs that ask for rollouts.
 *
 * A temporary failure (the bus, the database or a service is unavailable) is thrown as a RetryableError: the run waits until
 * it is over and reports the wait in its status. Any other error ends this attempt at the run.
 */

import type { Endpoint } from "@hone/config";
import type { Slot } from "@hone/core";
import type { OnNewVersion, SamplingParameters } from "@hone/rl";
import type { Context, Link } from "@hone/telemetry";
import type { RunRecord } from "../run/run-record.ts";

/** One dataset row, or an environment with its seed. The trainer passes it on without reading it. */
export interface Task {
  readonly id: string;
  readonly environment: string;
  readonly environmentSeed: bigint;
  readonly environmentConfigJson: string;
  readonly rowJson: string;
  /** Name of the part of a mix that it is of; empty = none. */
  readonly part: string;
  /** To the span in which dataset was asked for it; absent = none is recorded. */
  readonly askedIn?: Link | undefined;
}

/** Consecutive tasks of one split. */
export interface TaskRequest {
  /** The part of the run file that describes the split, as JSON. */
  readonly sourceJson: string;
  readonly runSeed: number;
  readonly cursor: number;
  readonly count: number;
  readonly isShuffled: boolean;
}

export interface TaskSource {
  /** @returns the tasks, and how many distinct tasks the source has. */
  batch(request: TaskRequest, signal: AbortSignal): Promise<{ tasks: Task[]; size: number }>;
}

/** A request for one rollout: what differs between the jobs of one run. */
export interface Job {
  readonly slot: Slot;
  readonly task: Task;
  /** Position of the task in its split's order. */
  readonly cursor: number;
  readonly sampling: SamplingParameters;
  /** Name of the scripted policy that acts instead of the run's model. */
  readonly scriptedPolicy?: string;
  /** An external model that acts instead of the run's model. */
  readonly endpoint?: Endpoint;
  /** Time limit of one attempt, milliseconds. @default that of the run file */
  readonly deadlineMs?: number | undefined;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /**
   * The rollout is of no use once the policy is more than this many versions ahead of its first token; absent = only the range
   * limits its versions.
   */
  readonly maxStaleness?: number;
  /** What happens to its generations under way when a version is published. @default recompute */
  readonly onNewVersion?: OnNewVersion;
}

export interface JobQueue {
  /**
   * Stores a job.
   * @returns false if the queue recently received a job of this slot with the same repetition; then nothing was stored.
   * @throws {RetryableError} when the bus is unavailable, or when the queue already holds as many jobs of the run as it accepts.
   */
  publish(run: RunRecord, job: Job, options: PublishJobOptions): Promise<boolean>;
  /** @returns the number of jobs, of all runs, that agent-rollout has not taken yet. */
  waitingJobs(): Promise<number>;
  /** @returns the number of jobs of a run that are in the queue, whether or not agent-rollout works on them. */
  jobsOf(runId: string): Promise<number>;
  /** @returns the ids of the runs that have a job in the queue. */
  runs(): Promise<string[]>;
  /** Removes the run's jobs that agent-rollout has not taken yet. */
  purge(runId: string): Promise<void>;
}

export interface PublishJobOptions {
  /** 0 for the first job of a slot. The queue accepts another job of the same slot only with a higher number. */
  readonly repetition: number;
  readonly trace: Context;
  readonly signal: AbortSignal;
}
