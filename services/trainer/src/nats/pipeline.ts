/** Reads from the bus where a run's rollouts are, between the trainer's jobs and the scored episodes. */

import { deadline, RetryableError, slotKey } from "@hone/core";
import {
  askHealth,
  type Bucket,
  type Bus,
  openRewardsOf,
  rolloutQueues,
  StreamName,
  slotFromWire,
  streamRoom,
  subjectCount,
  subjects,
} from "@hone/messaging";
import type { ReplicaState } from "@hone/proto-gen/policy";
import type { Pipeline, PipelineView } from "../domain/rollouts/find-cause-of-wait.ts";

/** For all requests together; services that do not answer take two seconds of it. */
const LOOK_DEADLINE_MS = 3_000;

export class BusPipeline implements Pipeline {
  readonly #bus: Bus;
  readonly #replicas: Bucket<ReplicaState>;

  constructor(bus: Bus, replicas: Bucket<ReplicaState>) {
    this.#bus = bus;
    this.#replicas = replicas;
  }

  async look(runId: string, signal: AbortSignal): Promise<PipelineView> {
    try {
      return await deadline("the state of the bus", LOOK_DEADLINE_MS, () => this.#read(runId), { signal });
    } catch (error) {
      if (error instanceof RetryableError) return { kind: "bus_silent" };
      throw error;
    }
  }

  async #read(runId: string): Promise<PipelineView> {
    const [health, jobs, queues, episodes, replicas, rewards] = await Promise.all([
      askHealth(this.#bus),
      subjectCount(this.#bus, StreamName.jobs, subjects.rolloutJob(runId)),
      rolloutQueues(this.#bus),
      streamRoom(this.#bus, StreamName.episodes),
      this.#replicas.entries(),
      openRewardsOf(this.#bus, runId),
    ]);
    return {
      kind: "seen",
      silent: health.silent,
      jobs,
      jobsPending: queues.jobs.pending,
      jobsInWork: queues.jobs.inWork,
      unscored: queues.episodes.pending + queues.episodes.inWork,
      episodes,
      replicas: replicas
        .filter(({ value }) => value.model === runId)
        .map(({ value: { replica, versions, activity } }) => ({ name: replica, versions, activity })),
      open: rewards.rollouts.flatMap(({ finished, sinceMs }) =>
        finished === undefined
          ? []
          : [{ slot: slotKey(slotFromWire(finished.slot)), sinceMs: Number(sinceMs) }],
      ),
    };
  }
}
