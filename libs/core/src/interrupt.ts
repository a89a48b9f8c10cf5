/**
 * A time limit for synchronous work that may never end, such as a user's regular expression on a model's text. Nothing else
 * in the process runs meanwhile, not even a timer; but V8 can stop a script, also while it matches an expression.
 *
 * Stopped work ends abruptly: its `finally` blocks do not run, and objects that it was changing may be half changed.
 */

import { isNativeError } from "node:util/types";
import { type Context, createContext, Script } from "node:vm";
import { allowedMs } from "./async/extend-deadlines.ts";
import { TerminalError } from "./errors.ts";

/** Work did not finish within its time limit and was stopped. */
export class InterruptedError extends TerminalError {
  readonly afterMs: number;

  constructor(afterMs: number, options?: ErrorOptions) {
    super("INTERRUPTED", `The work took longer than its limit of ${afterMs} ms and was stopped`, options);
    this.afterMs = afterMs;
  }
}

/** Calls the function `work` of its context; only this call is stopped. */
const CALL = new Script("work()");
/** Created once, as creating a context takes a millisecond. */
let shared: Context | undefined;

/**
 * Runs the work synchronously, and stops it after `ms` milliseconds. The time limit costs about 0.1 ms of CPU.
 * @throws {InterruptedError} when the work was stopped, and whatever the work throws.
 */
export function interruptAfter<T>(ms: number, work: () => T): T {
  shared ??= createContext({ work: undefined });
  const outer: unknown = shared.work;
  shared.work = work;
  try {
    // The timer counts whole milliseconds and may fire up to one millisecond early.
    return CALL.runInContext(shared, { timeout: allowedMs(ms) + 1 }) as T;
  } catch (error) {
    if (isStop(error)) throw new InterruptedError(ms, { cause: error });
    throw error;
  } finally {
    shared.work = outer;
  }
}

function isStop(error: unknown): boolean {
  // The error comes from the script's own realm, so it is not an instance of this realm's Error.
  return isNativeError(error) && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
