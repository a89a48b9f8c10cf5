/**
 * Synchronous work that may not come to an end, such as a foreign regular expression on a foreign text. Nothing else in
 * the process runs meanwhile, no timer either; V8 lets a script be stopped, also while it matches.
 *
 * What is stopped is cut off in mid-air: its `finally` blocks do not run, and what it was changing may be half changed.
 */

import { isNativeError } from "node:util/types";
import { type Context, createContext, Script } from "node:vm";
import { allowedMs } from "./async/patience.ts";
import { TerminalError } from "./errors.ts";

/** Work did not come to an end in its time. */
export class InterruptedError extends TerminalError {
  readonly afterMs: number;

  constructor(afterMs: number, options?: ErrorOptions) {
    super(
      "INTERRUPTED",
      `Cannot finish the work as it must come to an end within ${afterMs} ms: current value is more`,
      options,
    );
    this.afterMs = afterMs;
  }
}

/** Calls what stands in its context; a stop takes effect there alone. */
const CALL = new Script("work()");
/** Made once: a context takes a millisecond. */
let shared: Context | undefined;

/**
 * Does the work at once, and stops it after `ms` milliseconds. Watching costs about 0.1 ms of CPU.
 * @throws {InterruptedError} when it was stopped, and what the work throws.
 */
export function interruptAfter<T>(ms: number, work: () => T): T {
  shared ??= createContext({ work: undefined });
  const outer: unknown = shared.work;
  shared.work = work;
  try {
    // The timer counts whole milliseconds, and may come up to one early.
    return CALL.runInContext(shared, { timeout: allowedMs(ms) + 1 }) as T;
  } catch (error) {
    if (isStop(error)) throw new InterruptedError(ms, { cause: error });
    throw error;
  } finally {
    shared.work = outer;
  }
}

function isStop(error: unknown): boolean {
  // The error is of the script's own realm, so no instance of this one's Error.
  return isNativeError(error) && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
