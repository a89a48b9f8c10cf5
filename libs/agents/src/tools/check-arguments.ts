/** Arguments against their JSON schema, and what is wrong with them in words that a model can act on. */

import { BoundedSchema, TooSlowError } from "@hone/config";
import { InfrastructureError } from "../errors.ts";

const MAX_PROBLEMS = 4;

export class ArgumentChecker {
  readonly #tool: string;
  readonly #schema: BoundedSchema;

  /** @param schema of an object. @throws when it is no JSON schema. */
  constructor(schema: Readonly<Record<string, unknown>>, tool: string) {
    this.#tool = tool;
    this.#schema = new BoundedSchema(schema, `the tool ${tool}`);
  }

  /**
   * @returns undefined where they fit.
   * @throws {InfrastructureError} where the schema is such that arguments cannot be checked by it in time, time and again:
   *     that is no fault of the model's.
   */
  problemOf(args: Readonly<Record<string, unknown>>): string | undefined {
    try {
      return this.#textOf(args);
    } catch (error) {
      if (!(error instanceof TooSlowError)) throw error;
      if (!error.isFinal) return "They could not be checked in time; write shorter ones.";
      const rule = "its schema must be one that can be checked";
      throw new InfrastructureError(`call ${this.#tool}`, rule, error.message, { cause: error });
    }
  }

  #textOf(args: Readonly<Record<string, unknown>>): string | undefined {
    const errors = this.#schema.problemsOf(args);
    if (errors.length === 0) return undefined;
    // What holds a wrong value is wrong as well; the innermost says what it is.
    const places = errors.map(({ instanceLocation }) => instanceLocation);
    const innermost = errors.filter(
      ({ instanceLocation: place, keyword }) =>
        keyword !== "properties" || !places.some((other) => other.startsWith(`${place}/`)),
    );
    return (innermost.length > 0 ? innermost : errors)
      .slice(0, MAX_PROBLEMS)
      .map(({ instanceLocation, error }) => `${placeOf(instanceLocation)}${error}`)
      .join(" ");
  }
}

function placeOf(location: string): string {
  const path = location.replace(/^#\/?/, "").replaceAll("/", ".");
  return path === "" ? "" : `${path}: `;
}
