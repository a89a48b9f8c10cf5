/** Schemas that several dialects use for their parameters. */

import { z } from "zod";

/** More messages than any conversation has. The limit matters, as the template renders all of them. */
export const MAX_MESSAGES = 10_000;
export const MAX_TOOLS = 1_024;
/** Longest stop text, about two lines. */
const MAX_STOP_CHARACTERS = 256;

/** Makes a parameter optional; null means the same as absent. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A parameter that a session cannot support; it must be absent or null. */
export function refused(because: string) {
  return z.null(because).optional();
}

export const modelName = z.string().min(1).max(512);
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "1 to 64 letters, digits, _ and -");
export const tokenCount = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER);
export const stopText = z.string().min(1).max(MAX_STOP_CHARACTERS);
/** A JSON schema, or the arguments of a call. */
export const jsonObject = z.record(z.string(), z.unknown());
/** The description of a tool. */
export const description = z
  .string()
  .nullish()
  .transform((value) => value ?? "");
