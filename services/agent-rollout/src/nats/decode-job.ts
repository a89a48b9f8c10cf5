/** A rollout job, from the wire's words to the domain's. */

import { describeError, TerminalError } from "@hone/core";
import { slotFromWire, UndecodableMessageError } from "@hone/messaging";
import type { RolloutJob as WireJob } from "@hone/proto-gen/rollout";
import type { JobTask, RolloutJob } from "../domain/rollout-job.ts";

/** @throws {UndecodableMessageError} when the job lacks what every job has: nobody could run it. */
export function decodeJob(job: WireJob, subject: string): RolloutJob {
  const { sampling, limits, task } = job;
  if (sampling === undefined || limits === undefined || task === undefined) {
    throw new UndecodableMessageError(subject, "a rollout job has a task, sampling and limits");
  }
  try {
    return {
      runId: job.runId,
      slot: slotFromWire(job.slot),
      runSeed: safeInteger(job.runSeed, "run_seed"),
      task: decodeTask(task),
      agentName: job.agentName,
      agentConfigJson: job.agentConfigJson,
      scriptedPolicy: job.scriptedPolicy,
      sampling: {
        temperature: sampling.temperature,
        topP: sampling.topP,
        topK: sampling.topK,
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
      tokenizerPath: job.tokenizerPath,
      tokenizerDigest: job.tokenizerDigest,
    };
  } catch (error) {
    if (!(error instanceof TerminalError || error instanceof SyntaxError)) throw error;
    throw new UndecodableMessageError(subject, describeError(error), { cause: error });
  }
}

function decodeTask(task: NonNullable<WireJob["task"]>): JobTask {
  if (task.environment === "") {
    return {
      id: task.id,
      environment: undefined,
      row: JSON.parse(task.rowJson || "{}") as Record<string, unknown>,
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

/** Seeds are 64 bits wide on the wire and safe integers here. */
function safeInteger(value: bigint, name: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TerminalError(
    "UNSAFE_INTEGER",
    `Cannot read ${name} as it must lie below 2^53: current value is ${value}`,
  );
}
