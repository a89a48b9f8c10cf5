/** Arguments of calls, as clients send them back. */

import { parseJson } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";

/**
 * @param json what clients send: an object as JSON text; empty = no arguments.
 * @param param where it stands in the request.
 * @throws {ApiRequestError} for other JSON, or none.
 */
export function argumentsOfJson(json: string, param: string): Readonly<Record<string, unknown>> {
  const refuse = () =>
    new ApiRequestError(
      `Cannot answer as ${param} must be the JSON text of an object: current value is ${JSON.stringify(json.slice(0, 200))}`,
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
