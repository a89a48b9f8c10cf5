/** Reads the configuration of a service from its environment by a schema. */

import { z } from "zod";
import { ConfigError } from "./errors.ts";
import { problemsOf } from "./problems.ts";

/**
 * Reads the variables that a schema names. Other variables are ignored, and an empty variable counts as absent.
 * @throws {ConfigError} with all variables that are wrong.
 */
export function readEnvironment<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  environment: Readonly<Record<string, string | undefined>>,
): z.output<z.ZodObject<Shape>> {
  const input: Record<string, string> = {};
  for (const key of Object.keys(schema.shape)) {
    const value = environment[key];
    if (value !== undefined && value !== "") input[key] = value;
  }
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw new ConfigError(
    "the environment",
    problemsOf(result.error.issues, input, () => Object.keys(schema.shape)),
  );
}

/** The schema of a variable that holds a whole number. */
export function environmentInteger(minimum: number, maximum: number) {
  return z.coerce.number().int().min(minimum).max(maximum);
}
