/** Checks arguments against their JSON schema, and describes what is wrong so that a model can correct it. */

import { BoundedSchema, TooSlowError } from "@hone/config";
import { InfrastructureError } from "../errors.ts";

const MAX_PROBLEMS = 4;

export class ArgumentChecker {
  readonly #tool: string;
  readonly #schema: BoundedSchema;

  /** @param schema JSON schema of an object. @throws when it is not a JSON schema. */
  constructor(schema: Readonly<Record<string, unknown>>, tool: string) {
    this.#tool = tool;
    this.#schema = new BoundedSchema(schema, `the tool ${tool}`);
  }

  /**
   * @returns a description of what is wrong; undefined if the arguments fit.
   * @throws {InfrastructureError} when checking against the schema has repeatedly taken too long: then the schema is at
   *     fault, and not the model.
   */
  problemOf(args: Readonly<Record<string, unknown>>): string | undefined {
    try {
      return problemIn(this.#schema, args);
    } catch (error) {
      if (!(error instanceof TooSlowError)) throw error;
      if (!error.isFinal) return "They could not be checked in time; write shorter ones.";
      const problem = "its arguments cannot be checked against its schema";
      throw new InfrastructureError(`call ${this.#tool}`, problem, error.message, { cause: error });
    }
  }
}

/**
 * @returns a description of what is wrong with a value; undefined if it fits the schema.
 * @throws {TooSlowError} when checking takes too long.
 */
export function problemIn(schema: BoundedSchema, value: unknown): string | undefined {
  const errors = schema.problemsOf(value);
  if (errors.length === 0) return undefined;
  // An object that holds a wrong value is reported as well; only the innermost error says what is wrong.
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

function placeOf(location: string): string {
  const path = location.replace(/^#\/?/, "").replaceAll("/", ".");
  return path === "" ? "" : `${path}: `;
}
