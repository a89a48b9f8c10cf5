/** A JSON schema from outside that checks values written by a model, with a time limit (bounded-work.ts). */

import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { BoundedWork } from "./bounded-work.ts";

/** The draft of JSON schema that the OpenAI API and MCP use. */
const DRAFT = "2020-12";

export class BoundedSchema {
  readonly #validator: Validator;
  readonly #work: BoundedWork;

  /**
   * @param name what the schema is for, such as `the tool search`; for errors.
   * @throws {Error} when values cannot be checked by this schema, such as one with a broken reference.
   */
  constructor(schema: Readonly<Record<string, unknown>>, name: string) {
    this.#work = new BoundedWork(`Checking a value by the JSON schema of ${name}`);
    // The library resolves references with the first value, so checking one here finds a broken reference.
    this.#validator = this.#work.run(() => new Validator(schema as Schema, DRAFT, false));
    this.#work.run(() => this.#validator.validate(null));
  }

  /**
   * @returns what is wrong with a value; an empty list if it fits the schema.
   * @throws {TooSlowError} when checking takes too long.
   */
  problemsOf(value: unknown): readonly OutputUnit[] {
    const { valid, errors } = this.#work.run(() => this.#validator.validate(value));
    return valid ? [] : errors;
  }
}
