/** Runs work of a judge that a pattern, a schema or an answer could make endless (see BoundedPattern and BoundedSchema). */

import { TooSlowError } from "@hone/config";
import { JudgeError } from "../errors.ts";

/** @throws {JudgeError} when the work was stopped; the answer then gets no score, and not a zero. */
export function inTime<T>(judge: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TooSlowError)) throw error;
    throw new JudgeError(judge, error.message, { cause: error });
  }
}
