/** What is wrong with a model that a run file names. */

import { problemMessage } from "@hone/config";
import { describeError } from "@hone/core";
import type { Problem } from "../report/run-event.ts";

/** @param error why it cannot be used, where something failed. */
export function modelProblem(key: string, value: unknown, allowed: string, error?: Error): Problem {
  const reason = error === undefined ? "" : ` (${describeError(error)})`;
  const message = `${problemMessage(key, value, allowed)}${reason}`;
  return { key, valueJson: JSON.stringify(value), allowed, message };
}
