/** A user's regular expression on a model's text: it gets a time (bounded-work.ts). */

import { BoundedWork } from "./bounded-work.ts";

const SHOWN_CHARACTERS = 200;

export class BoundedPattern {
  readonly #expression: RegExp;
  readonly #work: BoundedWork;

  /** @throws {SyntaxError} when the pattern or the flags are none. */
  constructor(pattern: string, flags: string) {
    this.#expression = new RegExp(pattern, `${flags}g`);
    this.#work = new BoundedWork(`Matching the pattern /${pattern.slice(0, SHOWN_CHARACTERS)}/`);
  }

  /** Every match in order, each with its groups. @throws {TooSlowError} when matching takes too long. */
  matches(text: string): readonly (readonly (string | undefined)[])[] {
    return this.#work.run(() => [...text.matchAll(this.#expression)]);
  }
}
