/** Publishes rollout jobs. */

import { create } from "@bufbuild/protobuf";
import { agentOfPart, maxTurnsOfPart, modulesOf } from "@hone/config";
import { messageIdOf, rolloutIdOf } from "@hone/core";
import {
  type Bus,
  consumerBacklog,
  DurableName,
  onNewVersionToWire,
  publishStored,
  runsIn,
  StreamName,
  sendAttributes,
  slotToWire,
  subjectCount,
  subjects,
  translateBusError,
} from "@hone/messaging";
import { TaskSchema } from "@hone/proto-gen/dataset";
import {
  EndpointSchema,
  RolePolicySchema,
  type RolloutJob,
  RolloutJobSchema,
  RolloutLimitsSchema,
  SamplingSchema,
} from "@hone/proto-gen/rollout";
import { describeSpan } from "@hone/telemetry";
import { rolePlayers } from "../domain/learners/role-players.ts";
import type { Job, JobQueue, PublishJobOptions } from "../domain/rollouts/jobs.ts";
import type { RunRecord } from "../domain/run/run-record.ts";

/** The subject of jobs, whatever their run. */
const ANY_JOB = subjects.rolloutJob("*");

/** Names the tokenizer of a run: its folder below the state folder, and its digest. */
export type TokenizerOf = (runId: string) => Promise<{ path: string; digest: string }>;

export class JobPublisher implements JobQueue {
  readonly #bus: Bus;
  readonly #tokenizerOf: TokenizerOf;

  constructor(bus: Bus, tokenizerOf: TokenizerOf) {
    this.#bus = bus;
    this.#tokenizerOf = tokenizerOf;
  }

  async publish(
    run: RunRecord,
    job: Job,
    { repetition, trace, signal }: PublishJobOptions,
  ): Promise<boolean> {
    const rolloutId = rolloutIdOf(run.runId, job.slot);
    const tokenizer = await this.#tokenizerOf(run.runId);
    const subject = subjects.rolloutJob(run.runId);
    // A later owner of the run counts repetitions from 1 again.
    const repeated = repetition === 0 ? rolloutId : `${rolloutId}#${run.epoch}.${repetition}`;
    const messageId = messageIdOf(repeated, run.resumptions);
    describeSpan(trace, sendAttributes({ subject, template: ANY_JOB, messageId }));
    const stored = await publishStored(
      this.#bus,
      subject,
      RolloutJobSchema,
      encodeJob(run, job, tokenizer),
      // The caller tries again, because it can publish why the run waits.
      { messageId, trace, signal, deadlineMs: 0 },
    );
    return !stored.isDuplicate;
  }

  async waitingJobs(): Promise<number> {
    return (await consumerBacklog(this.#bus, StreamName.jobs, DurableName.jobs)).pending;
  }

  jobsOf(runId: string): Promise<number> {
    return subjectCount(this.#bus, StreamName.jobs, subjects.rolloutJob(runId));
  }

  runs(): Promise<string[]> {
    return runsIn(this.#bus, StreamName.jobs);
  }

  async purge(runId: string): Promise<void> {
    const filter = subjects.jobsToPurge(runId);
    try {
      await this.#bus.manager.streams.purge(StreamName.jobs, { filter });
    } catch (error) {
      throw translateBusError(error, "purge jobs", filter);
    }
  }
}

function encodeJob(run: RunRecord, job: Job, tokenizer: { path: string; digest: string }): RolloutJob {
  const { config } = run;
  const { part } = job.task;
  const agent = agentOfPart(config, part);
  return create(RolloutJobSchema, {
    runId: run.runId,
    slot: slotToWire(job.slot),
    runSeed: BigInt(config.seed),
    task: create(TaskSchema, job.task),
    agentName: agent.name,
    ...(agent.config === undefined ? {} : { agentConfigJson: JSON.stringify(agent.config) }),
    agentModules: modulesOf(config),
    ...(job.scriptedPolicy === undefined ? {} : { scriptedPolicy: job.scriptedPolicy }),
    ...endpointOf(job),
    sampling: create(SamplingSchema, job.sampling),
    limits: create(RolloutLimitsSchema, {
      maxTurns: maxTurnsOfPart(config, part),
      maxContextTokens: config.rollout.maxContextTokens,
      deadlineMs: job.deadlineMs ?? config.rollout.deadlineMs,
      maxAttempts: config.rollout.maxAttempts,
    }),
    roles: hasRoles(job) ? rolePlayers(run, job).map((each) => create(RolePolicySchema, each)) : [],
    lowestVersion: job.lowestVersion,
    highestVersion: job.highestVersion,
    ...(job.maxStaleness !== undefined && { maxStaleness: job.maxStaleness }),
    ...(job.onNewVersion !== undefined && { onNewVersion: onNewVersionToWire(job.onNewVersion) }),
    resumption: run.resumptions,
    cursor: BigInt(job.cursor),
    tokenizerDigest: tokenizer.digest,
    tokenizerPath: tokenizer.path,
  });
}

/** A script and an outside model play all roles of a rollout. */
function hasRoles({ scriptedPolicy, endpoint }: Job): boolean {
  return scriptedPolicy === undefined && endpoint === undefined;
}

function endpointOf({ endpoint }: Job) {
  if (endpoint === undefined) return {};
  const { keyVariable = "", ...rest } = endpoint;
  return { endpoint: create(EndpointSchema, { ...rest, keyVariable }) };
}
