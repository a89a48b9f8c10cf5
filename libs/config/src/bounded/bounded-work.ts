/**
 * Time limits for work that a run file, the schema of a tool's server or a model's answer can make endless: matching a
 * regular expression, or checking a value against a JSON schema.
 *
 * A pattern of ten characters can take years on a text of sixty characters, and a schema of a kilobyte can have alternatives
 * that double at each level. Nothing else in the process runs meanwhile.
 *
 * B1: such work has a time limit that is thousands of times what ordinary work takes.
 * B2: work that was stopped MAX_STOPS times is refused from then on, so that a run blocks its service for seconds in all and
 *     not with every answer. A single stop may only mean that the machine was busy.
 */

import { InterruptedError, interruptAfter, TerminalError } from "@hone/core";

const DEADLINE_MS = 1_000;
const MAX_STOPS = 3;

/** Work took longer than its time limit or exceeded the call stack, now or earlier. */
export class TooSlowError extends TerminalError {
  /** Whether this work is refused from now on (B2). */
  readonly isFinal: boolean;

  constructor(what: string, isFinal: boolean, options?: ErrorOptions) {
    const end = isFinal ? `; after ${MAX_STOPS} attempts it is not tried again` : "";
    super(
      "TOO_SLOW",
      `${what} takes longer than ${DEADLINE_MS} ms or nests too deep${end}; give a simpler one`,
      options,
    );
    this.isFinal = isFinal;
  }
}

export class BoundedWork {
  readonly #what: string;
  #stops = 0;

  /** @param what names the work at the beginning of a sentence, such as `Matching the pattern /a/`. */
  constructor(what: string) {
    this.#what = what;
  }

  /** @throws {TooSlowError} when the work takes too long, and whatever the work throws. */
  run<T>(work: () => T): T {
    if (this.#stops >= MAX_STOPS) throw new TooSlowError(this.#what, true);
    try {
      return interruptAfter(DEADLINE_MS, work);
    } catch (error) {
      // A RangeError means that a schema led to calls deeper than the stack or to too many arguments: it is as bad as a slow one.
      if (!(error instanceof InterruptedError || error instanceof RangeError)) throw error;
      this.#stops++;
      throw new TooSlowError(this.#what, this.#stops >= MAX_STOPS, { cause: error });
    }
  }
}
