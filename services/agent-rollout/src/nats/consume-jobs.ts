/**
 * Takes rollout jobs, runs them, publishes their episodes, and only then acknowledges them.
 *
 * J1: a job is acknowledged after its episode is stored; until then it is delivered again.
 * J2: the episode of one attempt is stored once, as its message id is made of rollout id and attempt. A job that is delivered
 *     again starts with attempt 1 and the same seeds, so it makes the same episode.
 * J3: a job goes back to the queue when it waits too long for one of Hone's own parts, or when this service stops.
 * J4: a job during which several processes died one after the other ends as infra_failed, as the last of its attempts.
 * J5: while the stream is full, an episode is kept, with its job, until there is space or its run is over, as making the
 *     rollout again would cost more.
 * J6: a client that reported the end of its episode is answered when that is stored, or is known not to be.
 */

import { describeError, messageIdOf, rolloutIdOf } from "@hone/core";
import {
  type Bus,
  consumeWork,
  DurableName,
  type PublishOptions,
  publishStored,
  StreamName,
  subjects,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import { EpisodeSchema, RolloutJobSchema, type RolloutJob as WireJob } from "@hone/proto-gen/rollout";
import type { Logger } from "@hone/telemetry";
import { ServiceStoppingError } from "../domain/errors.ts";
import type { RolloutJob, RolloutRecord } from "../domain/rollout-job.ts";
import { countRollout } from "../domain/rollout-metrics.ts";
import { type RolloutDependencies, runRollout, withoutAttempt } from "../domain/run-rollout.ts";
import type { EpisodePool } from "../domain/swarm/episode-pool.ts";
import type { ActiveRuns } from "./active-runs.ts";
import { decodeJob } from "./decode-job.ts";
import { encodeEpisode } from "./encode-episode.ts";

/** After this time an episode that cannot be stored is dropped, and its job is delivered again. */
const PUBLISH_DEADLINE_MS = 120_000;

export interface ConsumeJobsOptions {
  readonly dependencies: RolloutDependencies;
  readonly runs: ActiveRuns;
  /** Where clients find the episodes of the agent `swarm`. */
  readonly episodes: EpisodePool;
  readonly logger: Logger;
  /** Most rollouts at once. */
  readonly concurrency: number;
}

export function consumeJobs(bus: Bus, options: ConsumeJobsOptions): WorkConsumer {
  const { logger, concurrency } = options;
  return consumeWork(bus, RolloutJobSchema, {
    stream: StreamName.jobs,
    durable: DurableName.jobs,
    filter: subjects.rolloutJob("*"),
    concurrency,
    handle: (item) => runJob(bus, item, options),
    putAside: (item, deaths) => giveUp(bus, item, deaths, logger),
    onError: (error, { subject, sequence }) => {
      // This is normal when the service stops, and may concern hundreds of jobs at once.
      if (error instanceof ServiceStoppingError)
        logger.debug("a rollout job goes back", { subject, sequence });
      else logger.warn("a rollout job goes back to the queue", { subject, sequence, error });
    },
  });
}

async function runJob(bus: Bus, item: WorkItem<WireJob>, options: ConsumeJobsOptions): Promise<void> {
  const job = decodeJob(item.message, item.subject);
  const { signal, leave } = options.runs.enter(job.runId, job.resumption);
  const ended = countRollout(job.lowestVersion);
  const episodes = options.episodes.ofJob();
  let record: RolloutRecord | undefined;
  try {
    record = await runRollout(job, options.dependencies, {
      signal,
      trace: item.trace,
      onVersion: (listener) => options.runs.onVersion(job.runId, listener),
      episodes,
    });
    // The episode of a rollout that its run's end cut off is published too, but without waiting for space.
    const hold = signal.aborted ? {} : { signal, deadlineMs: Number.POSITIVE_INFINITY }; // J5
    const { isDuplicate } = await publishEpisode(bus, item, job, record, hold);
    episodes.stored(record, isDuplicate);
  } catch (error) {
    episodes.failed(describeError(error));
    throw error;
  } finally {
    ended(record);
    leave();
  }
}

/** J4 */
async function giveUp(bus: Bus, item: WorkItem<WireJob>, deaths: number, logger: Logger): Promise<void> {
  const job = decodeJob(item.message, item.subject);
  const reason = `${deaths} processes died one after the other while they ran this rollout`;
  logger.error("a rollout was given up", { rollout: rolloutIdOf(job.runId, job.slot), reason });
  await publishEpisode(bus, item, job, withoutAttempt(reason, job.limits.maxAttempts));
}

async function publishEpisode(
  bus: Bus,
  item: WorkItem<WireJob>,
  job: RolloutJob,
  record: RolloutRecord,
  hold: Pick<PublishOptions, "signal" | "deadlineMs"> = {},
): Promise<{ readonly isDuplicate: boolean }> {
  const episode = encodeEpisode(item.message, record);
  return publishStored(bus, subjects.rolloutFinished(job.runId), EpisodeSchema, episode, {
    messageId: messageIdOf(`${rolloutIdOf(job.runId, job.slot)}/${record.attempt}`, job.resumption), // J2
    trace: item.trace,
    deadlineMs: PUBLISH_DEADLINE_MS,
    ...hold,
  });
}
