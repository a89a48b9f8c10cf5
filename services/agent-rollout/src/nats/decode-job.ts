/** Decodes a rollout job from the wire. */

import { describeError, parseJson, TerminalError } from "@hone/core";
import {
  lastKeyOf,
  onNewVersionFromWire,
  samplingFromWire,
  slotFromWire,
  UndecodableMessageError,
} from "@hone/messaging";
import type { RolloutLimits, RolloutJob as WireJob } from "@hone/proto-gen/rollout";
import { outOfRange, SAMPLING_PARAMETERS, type SamplingParameters } from "@hone/rl";
import type { JobEndpoint, JobTask, RolloutJob } from "../domain/rollout-job.ts";

/** A day, which is the limit in run files. A timer beyond 31 bits of milliseconds would fire at once. */
const MAX_DEADLINE_MS = 86_400_000;

/** @throws {UndecodableMessageError} when the job is incomplete or breaks a rule, so that nobody could run it. */
export function decodeJob(job: WireJob, subject: string): RolloutJob {
  const { limits, task } = job;
  const run = lastKeyOf(subject);
  if (job.runId !== run)
    throw new UndecodableMessageError(
      subject,
      `the job is of the run ${job.runId}, but its subject names ${run}`,
    );
  if (job.sampling === undefined || limits === undefined || task === undefined) {
    throw new UndecodableMessageError(subject, "a rollout job must have a task, sampling and limits");
  }
  const sampling = samplingFromWire(job.sampling);
  const broken = brokenRange(sampling) ?? brokenRule(job, limits);
  if (broken !== undefined) throw new UndecodableMessageError(subject, broken);
  try {
    return {
      runId: job.runId,
      slot: slotFromWire(job.slot),
      runSeed: safeInteger(job.runSeed, "run_seed"),
      task: decodeTask(task),
      agentName: job.agentName,
      agentConfigJson: job.agentConfigJson,
      agentModules: job.agentModules,
      scriptedPolicy: job.scriptedPolicy,
      endpoint: decodeEndpoint(job.endpoint),
      sampling,
      limits: {
        maxTurns: limits.maxTurns,
        maxContextTokens: limits.maxContextTokens,
        deadlineMs: limits.deadlineMs,
        maxAttempts: limits.maxAttempts,
      },
      lowestVersion: job.lowestVersion,
      highestVersion: job.highestVersion,
      roles: decodeRoles(job.roles),
      maxStaleness: job.maxStaleness,
      onNewVersion: onNewVersionFromWire(job.onNewVersion),
      resumption: job.resumption,
      tokenizerPath: job.tokenizerPath,
      tokenizerDigest: job.tokenizerDigest,
    };
  } catch (error) {
    if (!(error instanceof TerminalError || error instanceof SyntaxError)) throw error;
    throw new UndecodableMessageError(subject, describeError(error), { cause: error });
  }
}

function brokenRange(sampling: SamplingParameters): string | undefined {
  const broken = outOfRange(SAMPLING_PARAMETERS, sampling);
  if (broken === undefined) return undefined;
  const { name, value, rule } = broken;
  return `its ${SAMPLING_PARAMETERS[name].snakeName} is ${value}; it ${rule}`;
}

/** @returns the first rule that the job breaks, of those that the wire format does not enforce. */
function brokenRule(
  { lowestVersion, highestVersion }: WireJob,
  { maxTurns, maxContextTokens, deadlineMs, maxAttempts }: RolloutLimits,
): string | undefined {
  const rules: readonly (readonly [isKept: boolean, rule: string])[] = [
    [maxTurns >= 1, "its max_turns is 0; it must be at least 1"],
    [maxContextTokens >= 1, "its max_context_tokens is 0; it must be at least 1"],
    [
      deadlineMs >= 1 && deadlineMs <= MAX_DEADLINE_MS,
      `its deadline is ${deadlineMs} ms; it must be 1 to ${MAX_DEADLINE_MS} ms`,
    ],
    [maxAttempts >= 1, "its max_attempts is 0; it must be at least 1"],
    [
      highestVersion >= lowestVersion,
      `its highest version ${highestVersion} is below its lowest version ${lowestVersion}`,
    ],
  ];
  return rules.find(([isKept]) => !isKept)?.[1];
}

function decodeRoles(roles: WireJob["roles"]): RolloutJob["roles"] {
  if (roles.length === 0) return undefined;
  return new Map(
    roles.map(({ role, model, isLearning, lowestVersion, highestVersion }) => {
      if (highestVersion >= lowestVersion)
        return [role, { model, isLearning, lowestVersion, highestVersion }];
      const problem = `the role ${role} has the highest version ${highestVersion}, which is below its lowest version ${lowestVersion}`;
      throw new TerminalError("BAD_ROLE", problem);
    }),
  );
}

function decodeEndpoint(endpoint: WireJob["endpoint"]): JobEndpoint | undefined {
  if (endpoint === undefined) return undefined;
  const { baseUrl, model, keyVariable, concurrency } = endpoint;
  return { baseUrl, model, keyVariable: keyVariable || undefined, concurrency: Math.max(1, concurrency) };
}

function decodeTask(task: NonNullable<WireJob["task"]>): JobTask {
  const named = { id: task.id, ...(task.part !== "" && { part: task.part }) };
  if (task.environment === "") {
    return {
      ...named,
      environment: undefined,
      row: decodeRow(task.rowJson),
    };
  }
  return {
    ...named,
    environment: {
      name: task.environment,
      seed: safeInteger(task.environmentSeed, "environment_seed"),
      configJson: task.environmentConfigJson,
    },
    row: undefined,
  };
}

function decodeRow(json: string): Record<string, unknown> {
  const row: unknown = parseJson(json || "{}");
  if (typeof row === "object" && row !== null && !Array.isArray(row)) return row as Record<string, unknown>;
  throw new TerminalError("BAD_ROW", `the task's row is not a JSON object: ${json.slice(0, 80)}`);
}

/** Seeds are 64 bits wide on the wire and safe integers here. */
function safeInteger(value: bigint, name: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TerminalError("UNSAFE_INTEGER", `${name} is ${value}; it must be below 2^53`);
}
