/**
 * A user's regular expression on a model's text. Such a pair can take for ever (nested repetitions), and nothing else in
 * the process would run meanwhile: a pattern gets a time, as V8 lets a script be stopped while it matches.
 */

import { isNativeError } from "node:util/types";
import { createContext, Script } from "node:vm";
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
  const sandbox = createContext({ expression, text: "" });
  const script = new Script("[...text.matchAll(expression)]");
  return {
    matches(text) {
      sandbox.text = text;
      try {
        return script.runInContext(sandbox, { timeout: MATCH_DEADLINE_MS }) as (string | undefined)[][];
      } catch (error) {
        if (!isTimeout(error)) throw error;
        throw new JudgeError(
          judge,
          `Cannot match a pattern as it must come to an end within ${MATCH_DEADLINE_MS} ms: current value is /${pattern}/ on ${text.length} characters`,
          { cause: error },
        );
      } finally {
        sandbox.text = "";
      }
    },
  };
}

function isTimeout(error: unknown): boolean {
  // The error is of the script's own realm, so no instance of this one's Error.
  return isNativeError(error) && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
