/** A rollout job, from the wire's words to the domain's. */

import { describeError, parseJson, TerminalError } from "@hone/core";
import { lastKeyOf, slotFromWire, UndecodableMessageError } from "@hone/messaging";
import type { RolloutLimits, Sampling, RolloutJob as WireJob } from "@hone/proto-gen/rollout";
import type { JobEndpoint, JobTask, RolloutJob } from "../domain/rollout-job.ts";

/** As run files allow it. */
const MAX_TEMPERATURE = 100;
/** A day, as run files allow it; timers count in 31 bits, and one that is set beyond them fires at once. */
const MAX_DEADLINE_MS = 86_400_000;

/** @throws {UndecodableMessageError} when the job lacks what every job has: nobody could run it. */
export function decodeJob(job: WireJob, subject: string): RolloutJob {
  const { sampling, limits, task } = job;
  const run = lastKeyOf(subject);
  if (job.runId !== run)
    throw new UndecodableMessageError(subject, `a job on this subject is one of the run ${run}`);
  if (sampling === undefined || limits === undefined || task === undefined) {
    throw new UndecodableMessageError(subject, "a rollout job has a task, sampling and limits");
  }
  const broken = brokenRule(job, sampling, limits);
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
      sampling: {
        temperature: sampling.temperature,
        topP: sampling.topP,
        topK: sampling.topK,
        minP: sampling.minP,
        repetitionPenalty: sampling.repetitionPenalty || 1,
        maxNewTokens: sampling.maxNewTokens,
      },
      limits: {
        maxTurns: limits.maxTurns,
        maxContextTokens: limits.maxContextTokens,
        deadlineMs: limits.deadlineMs,
        maxAttempts: limits.maxAttempts,
      },
      lowestVersion: job.lowestVersion,
      highestVersion: job.highestVersion,
      resumption: job.resumption,
      tokenizerPath: job.tokenizerPath,
      tokenizerDigest: job.tokenizerDigest,
    };
  } catch (error) {
    if (!(error instanceof TerminalError || error instanceof SyntaxError)) throw error;
    throw new UndecodableMessageError(subject, describeError(error), { cause: error });
  }
}

/** The rules of the message's schema that the wire itself does not keep. */
function brokenRule(
  { lowestVersion, highestVersion }: WireJob,
  { temperature, topP, minP, repetitionPenalty, maxNewTokens }: Sampling,
  { maxTurns, maxContextTokens, deadlineMs, maxAttempts }: RolloutLimits,
): string | undefined {
  const rules: readonly (readonly [isKept: boolean, rule: string])[] = [
    [temperature >= 0 && temperature <= MAX_TEMPERATURE, `its temperature lies in 0 to ${MAX_TEMPERATURE}`],
    [topP > 0 && topP <= 1, "its top_p lies above 0 and at most at 1"],
    [minP >= 0 && minP <= 1, "its min_p lies in 0 to 1"],
    [repetitionPenalty >= 0 && repetitionPenalty <= 100, "its repetition_penalty lies in 0 to 100"],
    [maxNewTokens >= 1, "a turn has at least one token"],
    [maxTurns >= 1, "a rollout has at least one turn"],
    [maxContextTokens >= 1, "its context has at least one token"],
    [deadlineMs >= 1 && deadlineMs <= MAX_DEADLINE_MS, `its deadline lies in 1 to ${MAX_DEADLINE_MS} ms`],
    [maxAttempts >= 1, "a rollout has at least one attempt"],
    [highestVersion >= lowestVersion, "its highest version is not below its lowest"],
  ];
  return rules.find(([isKept]) => !isKept)?.[1];
}

function decodeEndpoint(endpoint: WireJob["endpoint"]): JobEndpoint | undefined {
  if (endpoint === undefined) return undefined;
  const { baseUrl, model, keyVariable, concurrency } = endpoint;
  return { baseUrl, model, keyVariable: keyVariable || undefined, concurrency: Math.max(1, concurrency) };
}

function decodeTask(task: NonNullable<WireJob["task"]>): JobTask {
  if (task.environment === "") {
    return {
      id: task.id,
      environment: undefined,
      row: decodeRow(task.rowJson),
    };
  }
  return {
    id: task.id,
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
  throw new TerminalError(
    "BAD_ROW",
    `Cannot read a row as it must be a JSON object: current value is ${json.slice(0, 80)}`,
  );
}

/** Seeds are 64 bits wide on the wire and safe integers here. */
function safeInteger(value: bigint, name: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TerminalError(
    "UNSAFE_INTEGER",
    `Cannot read ${name} as it must lie below 2^53: current value is ${value}`,
  );
}
