/**
 * Runs a rollout: attempts are made until one does not fail for a reason outside the agent.
 *
 * R1: an attempt that fails for a reason outside the agent is repeated in a fresh environment, with the same seeds, after a
 *     growing pause. After `maxAttempts` attempts the rollout ends as infra_failed.
 * R2: waiting for one of Hone's own parts costs no attempt.
 * R3: an episode that comes back from its client costs no attempt for as often as the agent allows, so a laptop that vanishes
 *     does not use a rollout up, and clients that never finish do.
 */

import {
  type AgentCatalog,
  type AgentModules,
  type Policy,
  type RolloutObserver,
  scriptOf,
} from "@hone/agents";
import { describeError, Outcome, pause, TerminalError } from "@hone/core";
import type { Context } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import { chooseAgent } from "./agent-choice.ts";
import type { Endpoints } from "./endpoints.ts";
import { environmentMaker } from "./environment-maker.ts";
import { UnusableJobError } from "./errors.ts";
import type { RolloutJob, RolloutRecord } from "./rollout-job.ts";
import { type AttemptParts, runAttempt } from "./run-attempt.ts";
import type { SessionHost } from "./sessions/session-host.ts";
import type { JobEpisodes } from "./swarm/job-episodes.ts";

/** What rollouts share. */
export interface RolloutDependencies {
  readonly policy: Policy;
  readonly endpoints: Endpoints;
  readonly sessions: SessionHost;
  readonly agents: AgentCatalog;
  readonly modules: AgentModules;
  /** Gives the renderer of a job's tokenizer. */
  readonly rendererOf: (job: RolloutJob) => Promise<ChatRenderer>;
  /** Gives the configuration in a YAML file that a row names, as JSON. @throws {TerminalError} when there is none. */
  readonly agentConfigAt: (path: string) => Promise<string>;
}

export interface RolloutOptions {
  /** Aborts with a RolloutCancelledError or a ServiceStoppingError as its reason. */
  readonly signal: AbortSignal;
  readonly trace: Context;
  /** Calls back with every version of the policy that is published, until the returned function is called. @default never */
  readonly onVersion?: (listener: (version: number) => void) => () => void;
  /** Observes every attempt. @default none */
  readonly observer?: RolloutObserver | undefined;
  /** Where clients find episodes. @default there are no clients */
  readonly episodes?: JobEpisodes | undefined;
}

/** First pause between two attempts; doubles each time. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;

/**
 * Runs a rollout to its end.
 * @throws {PolicyUnavailableError | ServiceStoppingError} when the job should go back to the queue.
 */
export async function runRollout(
  job: RolloutJob,
  dependencies: RolloutDependencies,
  options: RolloutOptions,
): Promise<RolloutRecord> {
  let parts: AttemptParts;
  try {
    parts = await partsOf(job, dependencies);
  } catch (error) {
    // A terminal error ends the rollout, as no attempt could succeed; after any other the job goes back to the queue.
    if (!(error instanceof TerminalError)) throw error;
    return withoutAttempt(describeError(error), 1);
  }
  const failedAttempts: string[] = [];
  let attempt = 1;
  let returns = 0;
  while (true) {
    const end = await runAttempt(job, parts, { ...options, attempt });
    if (end.kind === "given_back") throw end.error;
    if (end.kind === "ended") return { ...end.record, failedAttempts };
    options.episodes?.failed(end.record.reason);
    const isFree = returns < end.freeReturns; // R3
    if (!isFree && (!end.isRetryable || attempt >= job.limits.maxAttempts))
      return { ...end.record, failedAttempts };
    failedAttempts.push(end.record.reason);
    const pauseMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (attempt - 1));
    if (isFree) returns++;
    else attempt++;
    // After an abort during the pause the next attempt ends at once, with the right outcome.
    await pause(pauseMs, options.signal);
  }
}

/** @throws {TerminalError} when the job names something that does not exist here, or its parts do not fit together. */
async function partsOf(job: RolloutJob, dependencies: RolloutDependencies): Promise<AttemptParts> {
  const { scriptedPolicy, task } = job;
  const run = { name: job.agentName, configJson: job.agentConfigJson };
  const { name: agentName, configJson } = await chooseAgent(run, task.row, dependencies.agentConfigAt);
  const modules =
    job.agentModules.length === 0 ? undefined : await dependencies.modules.load(job.agentModules);
  const agent = await dependencies.agents.prepare({ name: agentName, configJson, modules });
  const script = scriptedPolicy === undefined ? undefined : scriptOf(scriptedPolicy);
  if (scriptedPolicy !== undefined && script === undefined) {
    throw new UnusableJobError(`its scripted policy "${scriptedPolicy}" is unknown`);
  }
  const { leavesEnvironment = false } = agent.definition;
  if (leavesEnvironment && script !== undefined) {
    throw new UnusableJobError(
      `no script can play for the agent ${agentName}, as its clients play elsewhere`,
    );
  }
  const makeEnvironment =
    task.environment === undefined || leavesEnvironment
      ? undefined
      : environmentMaker(task.environment, modules?.exports, { keys: dependencies.endpoints.keys });
  if (makeEnvironment === undefined && (agent.definition.needsEnvironment || script !== undefined)) {
    throw new UnusableJobError(
      `${script === undefined ? `the agent ${agentName}` : "a script"} needs a task with an environment, and the task ${task.id} has none`,
    );
  }
  if (agent.definition.needsRow === true && task.row === undefined) {
    throw new UnusableJobError(
      `the agent ${agentName} needs the row of a dataset, and the task ${task.id} has none`,
    );
  }
  const renderer = await dependencies.rendererOf(job);
  const policy =
    job.endpoint === undefined
      ? dependencies.policy
      : dependencies.endpoints.policyOf(job.endpoint, renderer);
  const { sessions, endpoints } = dependencies;
  return { agent, script, makeEnvironment, policy, renderer, sessions, endpoints };
}

/** The record of a job for which no attempt can be made, or no further one. */
export function withoutAttempt(reason: string, attempt: number): RolloutRecord {
  return {
    attempt,
    outcome: Outcome.infraFailed,
    reason,
    samples: [],
    turns: [],
    metrics: {},
    metadata: {},
    toolUses: [],
    environmentReturn: 0,
    failedAttempts: [],
    durationMs: 0,
    generationMs: 0,
    sessionKeyDigests: [],
  };
}
