/** What agents outside are told of their task, and what they answer. */

import { type AgentResult, type AgentRollout, type AgentTask, promptOfRow } from "@hone/agents";
import { parseJson } from "@hone/core";
import { z } from "zod";
import { withholdAnswers } from "./withhold-answers.ts";

/** The task as JSON, for a program that knows nothing of Hone. */
export interface OutsideTask {
  /** Stable name within its source. */
  readonly id: string;
  /** The row's prompt as messages with a role and a text. */
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  /** The row; without its answer, unless the run file exposes it. */
  readonly row: AgentTask["row"];
  /** Most calls of the model; one more is refused. */
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

/** What is answered beyond this is no result. */
export const MAX_RESULT_BYTES = 1_048_576;

const resultSchema = z.looseObject({ metrics: z.record(z.string(), z.number()).default({}) });

/**
 * A result: a JSON object whose `metrics` are numbers for the run's curves; all else goes to the judge as metadata.
 * @param text empty = there is none.
 * @param what names it in errors.
 * @throws {SyntaxError} for anything else; the agent's own fault.
 */
export function readOutsideResult(text: string, what: string): AgentResult {
  if (text.trim() === "") return {};
  const refuse = (rule: string) =>
    new SyntaxError(`Cannot read ${what} as ${rule}: current value is ${JSON.stringify(text.slice(0, 200))}`);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw refuse("it must be JSON");
  }
  const parsed = resultSchema.safeParse(value);
  if (!parsed.success) throw refuse("it must be an object, with numbers as `metrics` if it has any");
  const { metrics, ...metadata } = parsed.data;
  return { metrics, metadata };
}
