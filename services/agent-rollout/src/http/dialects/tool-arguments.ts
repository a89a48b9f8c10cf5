/** Reads the arguments of calls that clients send back. */

import { parseJson } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";

/**
 * @param json the JSON text of an object; empty = no arguments.
 * @param param its path in the request, for errors.
 * @throws {ApiRequestError} for anything else.
 */
export function argumentsOfJson(json: string, param: string): Readonly<Record<string, unknown>> {
  const refuse = () =>
    new ApiRequestError(
      `${param} is ${JSON.stringify(json.slice(0, 200))}; it must be the JSON text of an object`,
      { param },
    );
  if (json.trim() === "") return {};
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    if (error instanceof SyntaxError) throw refuse();
    throw error;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse();
  return value as Readonly<Record<string, unknown>>;
}
