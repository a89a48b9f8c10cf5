/** A user's regular expression that is matched against a model's text, with a time limit (bounded-work.ts). */

import { BoundedWork } from "./bounded-work.ts";

const SHOWN_CHARACTERS = 200;

export class BoundedPattern {
  readonly #expression: RegExp;
  readonly #work: BoundedWork;

  /** @throws {SyntaxError} when the pattern or the flags are not valid. */
  constructor(pattern: string, flags: string) {
    this.#expression = new RegExp(pattern, `${flags}g`);
    this.#work = new BoundedWork(`Matching the pattern /${pattern.slice(0, SHOWN_CHARACTERS)}/`);
  }

  /** All matches in order, each with its groups. @throws {TooSlowError} when matching takes too long. */
  matches(text: string): readonly (readonly (string | undefined)[])[] {
    return this.#work.run(() => [...text.matchAll(this.#expression)]);
  }
}
