/**
 * A user's regular expression on a model's text. Such a pair can take for ever (nested repetitions): it gets a time.
 */

import { InterruptedError, interruptAfter } from "@hone/core";
import { JudgeError } from "../errors.ts";

/** Thousands of times what a sound pattern takes on a long answer. */
const MATCH_DEADLINE_MS = 1_000;

export interface BoundedPattern {
  /** Every match in order, each with its groups. @throws {JudgeError} when matching takes too long. */
  matches(text: string): readonly (readonly (string | undefined)[])[];
}

/** @throws {SyntaxError} when the pattern or the flags are none. */
export function boundedPattern(judge: string, pattern: string, flags: string): BoundedPattern {
  const expression = new RegExp(pattern, `${flags}g`);
  return {
    matches(text) {
      try {
        return interruptAfter(MATCH_DEADLINE_MS, () => [...text.matchAll(expression)]);
      } catch (error) {
        if (!(error instanceof InterruptedError)) throw error;
        throw new JudgeError(
          judge,
          `Cannot match a pattern as it must come to an end within ${MATCH_DEADLINE_MS} ms: current value is /${pattern}/ on ${text.length} characters`,
          { cause: error },
        );
      }
    },
  };
}
