/** Waits until a condition holds, instead of for a fixed time. */

import { DeadlineError, delay, describeError, type WaitOptions } from "@hone/core";

export interface EventuallyOptions extends WaitOptions {
  /** @default 10_000 */
  readonly deadlineMs?: number;
}

const DEFAULT_DEADLINE_MS = 10_000;
const LOOK_EVERY_MS = 10;

/**
 * Repeats `check` until it returns something other than undefined or false.
 * @param what names the condition in the error, such as "the second delivery".
 * @throws {DeadlineError} whose cause is the last failure of `check`.
 */
export async function eventually<T>(
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  options: EventuallyOptions = {},
): Promise<T> {
  const { deadlineMs = DEFAULT_DEADLINE_MS, signal } = options;
  const until = performance.now() + deadlineMs;
  let lastFailure = "";
  while (true) {
    try {
      const value = await check();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      lastFailure = ` (last failure: ${describeError(error)})`;
    }
    if (performance.now() > until) throw new DeadlineError(`${what}${lastFailure}`, deadlineMs);
    await delay(LOOK_EVERY_MS, { signal });
  }
}
