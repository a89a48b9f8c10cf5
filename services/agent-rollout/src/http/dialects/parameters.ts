/** What the parameters of several dialects have in common. */

import { z } from "zod";

/** More than any conversation has turns; each costs a walk through the template. */
export const MAX_MESSAGES = 10_000;
export const MAX_TOOLS = 1_024;
/** A stop text that is longer than a line is none. */
const MAX_STOP_CHARACTERS = 256;

/** Absent and null mean the same. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A parameter that a session cannot follow: only absent and null are taken. */
export function refused(because: string) {
  return z.null(because).optional();
}

export const modelName = z.string().min(1).max(512);
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "1 to 64 letters, digits, _ and -");
export const tokenCount = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER);
export const stopText = z.string().min(1).max(MAX_STOP_CHARACTERS);
/** An object: a JSON schema, or the arguments of a call. */
export const jsonObject = z.record(z.string(), z.unknown());
/** Of a tool. */
export const description = z
  .string()
  .nullish()
  .transform((value) => value ?? "");
