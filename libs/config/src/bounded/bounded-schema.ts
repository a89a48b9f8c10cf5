/** A JSON schema from outside on a value that a model wrote: checking gets a time (bounded-work.ts). */

import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { BoundedWork } from "./bounded-work.ts";

/** Draft of JSON schema; the OpenAI API and MCP have schemas of this one. */
const DRAFT = "2020-12";

export class BoundedSchema {
  readonly #validator: Validator;
  readonly #work: BoundedWork;

  /**
   * @param name of what the schema is for, such as `the tool search`.
   * @throws {Error} when it is no JSON schema that can be checked, such as one with a broken reference.
   */
  constructor(schema: Readonly<Record<string, unknown>>, name: string) {
    this.#work = new BoundedWork(`Checking a value by the JSON schema of ${name}`);
    // What it refers to is resolved with the first value: a broken reference is found now.
    this.#validator = this.#work.run(() => new Validator(schema as Schema, DRAFT, false));
    this.#work.run(() => this.#validator.validate(null));
  }

  /**
   * What is wrong with a value; nothing where it fits.
   * @throws {TooSlowError} when that cannot be found out in time.
   */
  problemsOf(value: unknown): readonly OutputUnit[] {
    const { valid, errors } = this.#work.run(() => this.#validator.validate(value));
    return valid ? [] : errors;
  }
}
