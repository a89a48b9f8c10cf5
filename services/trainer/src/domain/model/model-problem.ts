/** What is wrong with a model that a run file names. */

import { describeError } from "@hone/core";
import { type Problem, problemOf } from "../report/run-event.ts";

/** @param error why it cannot be used, where something failed. */
export function modelProblem(key: string, value: unknown, allowed: string, error?: Error): Problem {
  const reason = error === undefined ? "" : ` (${describeError(error)})`;
  const problem = problemOf(key, value, allowed);
  return { ...problem, message: `${problem.message}${reason}` };
}
