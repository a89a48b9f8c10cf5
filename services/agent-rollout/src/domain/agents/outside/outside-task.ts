/** The task that external agents get, and the result that they return. */

import { type AgentResult, type AgentRollout, type AgentTask, promptOfRow } from "@hone/agents";
import { parseJson } from "@hone/core";
import { z } from "zod";
import { withholdAnswers } from "./withhold-answers.ts";

/** The task as JSON, for a program that does not use Hone's libraries. */
export interface OutsideTask {
  /** Stable name within the task's source. */
  readonly id: string;
  /** The row's prompt as messages with a role and a text. */
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  /** The row, without its answer unless the run file exposes it. */
  readonly row: AgentTask["row"];
  /** Most calls of the model; further ones are refused. */
  readonly maxTurns: number;
  /** Most tokens of one answer. */
  readonly maxNewTokens: number;
}

/** @throws {BadRowError} when the row has no prompt. */
export function outsideTaskOf({
  config,
  task,
  maxTurns,
  maxNewTokens,
}: Pick<
  AgentRollout<{ readonly exposeGroundTruth: boolean }>,
  "config" | "task" | "maxTurns" | "maxNewTokens"
>): OutsideTask {
  const prompt = promptOfRow(task);
  const isWhole = config.exposeGroundTruth || task.row === undefined;
  const row = isWhole ? task.row : withholdAnswers(task.row);
  return { id: task.id, prompt, row, maxTurns, maxNewTokens };
}

/** The task of an episode that a client plays: a row, or an environment that the client has itself. */
export interface SwarmTask extends Omit<OutsideTask, "prompt"> {
  /** Absent where the row has none. */
  readonly prompt?: OutsideTask["prompt"];
  readonly environment?: AgentTask["environment"];
}

/** @throws {BadRowError} when the row's prompt is not one. */
export function swarmTaskOf(rollout: Parameters<typeof outsideTaskOf>[0]): SwarmTask {
  const { config, task, maxTurns, maxNewTokens } = rollout;
  if (task.row?.prompt !== undefined) return outsideTaskOf(rollout);
  const row = config.exposeGroundTruth || task.row === undefined ? task.row : withholdAnswers(task.row);
  return { id: task.id, row, environment: task.environment, maxTurns, maxNewTokens };
}

/** Largest result; a larger one is refused. */
export const MAX_RESULT_BYTES = 1_048_576;

const resultSchema = z.looseObject({ metrics: z.record(z.string(), z.number()).default({}) });

/**
 * Reads a result: a JSON object whose `metrics` are numbers for the run's charts. Everything else in it goes to the judge as
 * metadata.
 * @param text empty = there is no result.
 * @param what the name of the result in errors.
 * @throws {SyntaxError} for anything else, with which the agent has failed.
 */
export function readOutsideResult(text: string, what: string): AgentResult {
  if (text.trim() === "") return {};
  const refuse = (problem: string) =>
    new SyntaxError(`${what} ${problem}; it is ${JSON.stringify(text.slice(0, 200))}`);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw refuse("is not JSON");
  }
  const parsed = resultSchema.safeParse(value);
  if (!parsed.success) throw refuse("must be an object whose `metrics`, if there are any, are numbers");
  const { metrics, ...metadata } = parsed.data;
  return { metrics, metadata };
}
