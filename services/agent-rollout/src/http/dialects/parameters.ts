/** Schemas that several dialects use for their parameters. */

import { ApiRequestError } from "@hone/service-kit";
import type { ChatTool } from "@hone/tokenizer";
import { z } from "zod";
import { problemOfSchema, type ResponseFormat } from "../../domain/sessions/response-format.ts";
import {
  MAX_CALLS_AT_ONCE,
  type SessionReply,
  type SessionRequest,
} from "../../domain/sessions/session-call.ts";

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
/** How many answers a call asks for. */
export const answerCount = z.number().int().min(1).max(MAX_CALLS_AT_ONCE);
/** A JSON schema, or the arguments of a call. */
export const jsonObject = z.record(z.string(), z.unknown());
/** The description of a tool. */
export const description = z
  .string()
  .nullish()
  .transform((value) => value ?? "");

/**
 * @param param the schema's path in the request, for errors.
 * @throws {ApiRequestError} when answers cannot be checked by the schema.
 */
export function schemaFormat(
  schema: Readonly<Record<string, unknown>>,
  says: string | undefined,
  param: string,
): ResponseFormat {
  const problem = problemOfSchema(schema);
  if (problem !== undefined) {
    throw new ApiRequestError(`${param} is not a schema that answers can be checked by: ${problem}`, {
      param,
    });
  }
  return { schema, description: says ?? "" };
}

/** @throws {ApiRequestError} when a call is demanded of a tool that the request does not have. */
export function checkToolChoice(choice: SessionRequest["toolChoice"], tools: readonly ChatTool[]): void {
  const param = "tool_choice";
  if (choice === "required" && tools.length === 0) {
    throw new ApiRequestError("tool_choice demands a call, and the request has no tools", { param });
  }
  if (typeof choice !== "object" || tools.some((tool) => tool.function.name === choice.name)) return;
  const names = tools.map((tool) => tool.function.name).join(", ") || "none";
  throw new ApiRequestError(
    `tool_choice demands a call of ${choice.name}, which is not one of the request's tools (${names})`,
    { param },
  );
}

/** An addition to the bodies of all APIs: whether the answer is what the call demanded. */
export function demandsBody({ checks }: SessionReply): object {
  if (checks.length === 0) return {};
  const demands = Object.fromEntries(
    checks.map(({ demand, problem }) => [
      demand,
      { is_met: problem === undefined, ...(problem !== undefined && { problem }) },
    ]),
  );
  return { demands };
}
