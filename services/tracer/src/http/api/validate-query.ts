/** Checks the parameters of queries and paths. */

import { InvalidInputError } from "@hone/core";
import { z } from "zod";

/**
 * Reads parameters by a schema; unknown ones are refused.
 * @throws {InvalidInputError} that names the first wrong parameter; the HTTP app answers 400.
 */
export function parseParameters<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  parameters: Readonly<Record<string, string>>,
): z.output<z.ZodObject<Shape>> {
  const parsed = schema.strict().safeParse(parameters);
  if (parsed.success) return parsed.data as z.output<z.ZodObject<Shape>>;
  const issue = parsed.error.issues[0];
  const name = issue?.code === "unrecognized_keys" ? issue.keys.join(", ") : (issue?.path.join(".") ?? "");
  const allowed =
    issue?.code === "unrecognized_keys" ? Object.keys(schema.shape).join(", ") : (issue?.message ?? "");
  throw new InvalidInputError(
    `the parameter "${name}" has the value ${JSON.stringify(parameters[name] ?? null)}; allowed is ${allowed}`,
    { path: name, allowed },
  );
}

const MAX_INTEGER = 2_147_483_647;

/** A whole number in a parameter. */
export const wholeNumber = z
  .string()
  .regex(/^\d{1,10}$/, "a whole number")
  .transform(Number)
  .refine((value) => value <= MAX_INTEGER, "a whole number below 2^31");

/** The id of a row, which may be larger than a `wholeNumber`. */
export const rowId = z
  .string()
  .regex(/^\d{1,15}$/, "a whole number")
  .transform(Number);

export const decimal = z
  .string()
  .regex(/^-?\d{1,15}(\.\d{1,15})?(e-?\d{1,2})?$/i, "a number")
  .transform(Number);

/** The part of a path that names a run, and those that name a rollout. */
export const runParameters = z.object({ run: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "a run id") });
export const slotParameters = runParameters.extend({
  slot: z.string().regex(/^(train|eval|warm)(\.\d{1,10}){3}$/, "<split>.<step>.<task>.<index>"),
});
export const stepParameters = runParameters.extend({ step: wholeNumber });
