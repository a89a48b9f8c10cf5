/** Arguments against their JSON schema, and what is wrong with them in words that a model can act on. */

import { type Schema, Validator } from "@cfworker/json-schema";

/** Draft of JSON schema; the OpenAI API and MCP have schemas of this one. */
const DRAFT = "2020-12";
const MAX_PROBLEMS = 4;

export class ArgumentChecker {
  readonly #validator: Validator;

  /** @param schema of an object. @throws when it is no JSON schema. */
  constructor(schema: Readonly<Record<string, unknown>>) {
    this.#validator = new Validator(schema as Schema, DRAFT, false);
  }

  /** @returns undefined where they fit. */
  problemOf(args: Readonly<Record<string, unknown>>): string | undefined {
    const { valid, errors } = this.#validator.validate(args);
    if (valid) return undefined;
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
