/** Errors of tests on whole stacks. */

import { describeError } from "@hone/core";

/** An error that says what went wrong, and below it what the stack looked like. */
export function failureOf(error: unknown, state: string): Error {
  return new Error(`${describeError(error)}\n\n${state}`, { cause: error });
}
