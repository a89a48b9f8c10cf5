/**
 * Work that a run file, a schema of a tool's server or a model's answer can make endless: matching a regular expression,
 * checking a value against a JSON schema.
 *
 * There are patterns of ten characters that take longer than anybody lives on a text of sixty, and schemas of a kilobyte
 * whose alternatives double at each level. Nothing else in the process runs meanwhile.
 *
 * B1: such work has a deadline; it is thousands of times what sound work takes.
 * B2: work that was stopped MAX_STOPS times is refused from then on: a run holds up its service for seconds in all, and not
 *     with every answer. Once may have been a machine that stood still.
 */

import { InterruptedError, interruptAfter, TerminalError } from "@hone/core";

const DEADLINE_MS = 1_000;
const MAX_STOPS = 3;

/** Work did not end in its time, or not within the stack, now or earlier. */
export class TooSlowError extends TerminalError {
  /** Whether it is not tried any more (B2). */
  readonly isFinal: boolean;

  constructor(what: string, isFinal: boolean, options?: ErrorOptions) {
    const end = isFinal ? `, ${MAX_STOPS} times by now, and is not tried again` : "";
    super(
      "TOO_SLOW",
      `${what} takes longer than ${DEADLINE_MS} ms, or nests too deep${end}; give a simpler one`,
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

  /** @throws {TooSlowError} when it takes too long, and what the work throws. */
  run<T>(work: () => T): T {
    if (this.#stops >= MAX_STOPS) throw new TooSlowError(this.#what, true);
    try {
      return interruptAfter(DEADLINE_MS, work);
    } catch (error) {
      // Calls as deep as the stack, and lists as long as no call takes them, come of schemas that are no better.
      if (!(error instanceof InterruptedError || error instanceof RangeError)) throw error;
      this.#stops++;
      throw new TooSlowError(this.#what, this.#stops >= MAX_STOPS, { cause: error });
    }
  }
}
