/** Reads the JSON body of a change. */

import { InvalidInputError, parseJson } from "@hone/core";
import type { Context } from "hono";
import type { z } from "zod";
import { BodyTooLargeError } from "../../errors.ts";
import { readBody } from "../read-body.ts";

/** Enough for the longest note. */
const MAX_BODY_BYTES = 64 * 1024;

/** @throws {InvalidInputError} that names the first field that is wrong; the HTTP app answers 400. */
export async function readJson<Schema extends z.ZodType>(
  c: Context,
  schema: Schema,
): Promise<z.output<Schema>> {
  let value: unknown;
  try {
    const { body } = await readBody(c.req.raw, MAX_BODY_BYTES);
    value = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (error) {
    if (error instanceof BodyTooLargeError)
      throw new InvalidInputError(`the body has more than ${MAX_BODY_BYTES} bytes`, {
        path: "",
        allowed: "less",
      });
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    throw new InvalidInputError("the body is not JSON in UTF-8", { path: "", allowed: "a JSON object" });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join(".") ?? "";
  const allowed = issue?.message ?? "";
  throw new InvalidInputError(`${path === "" ? "the body" : path} is not accepted: ${allowed}`, {
    path,
    allowed,
  });
}
