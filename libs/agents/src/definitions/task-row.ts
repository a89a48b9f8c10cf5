/**
 * The row schema that data sets of verl and ChatLearn share:
 * `data_source, prompt, ability, reward_model: { style, ground_truth }, extra_info, agent_name, agent_cfg_path`.
 *
 * Only `prompt` is required; other columns are passed on unchanged.
 */

import { parseJson } from "@hone/core";
import type { ChatMessage, ChatToolCall } from "@hone/tokenizer";
import { z } from "zod";
import { BadRowError } from "../errors.ts";

/** Text, or the text parts of OpenAI's messages. */
const content = z.union([
  z.string(),
  z
    .array(z.object({ type: z.literal("text"), text: z.string() }))
    .transform((parts) => parts.map(({ text }) => text).join("")),
]);

/** JSON in a string, as in OpenAI's API, or an object, as in chat templates. */
const callArguments = z.union([
  z.record(z.string(), z.unknown()),
  z.string().transform((text, context): Record<string, unknown> => {
    const value = objectOf(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: "an object, or one as JSON" });
    return z.NEVER;
  }),
]);

const toolCall = z
  .object({
    id: z.string().nullish(),
    function: z.object({ name: z.string().min(1), arguments: callArguments }),
  })
  .transform(
    ({ id, function: called }): ChatToolCall => ({ id: id ?? "", type: "function", function: called }),
  );

const message = z
  .object({
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: content.nullish(),
    tool_calls: z.array(toolCall).nullish(),
    tool_call_id: z.string().nullish(),
    name: z.string().nullish(),
  })
  .refine(({ content, tool_calls: calls }) => typeof content === "string" || (calls ?? []).length > 0, {
    message: "a message with a text, or calls of tools in its place",
  })
  .refine(({ role, tool_calls: calls }) => role === "assistant" || (calls ?? []).length === 0, {
    message: "the assistant's where it has calls of tools",
  })
  .transform(
    ({ role, content, tool_calls: calls, tool_call_id: id, name }): ChatMessage => ({
      role,
      content: content ?? "",
      // In Parquet files, null stands for an absent value.
      ...(calls != null && calls.length > 0 && { tool_calls: calls }),
      ...(id != null && { tool_call_id: id }),
      ...(name != null && { name }),
    }),
  );

const prompt = z.union([z.string().min(1), z.array(message).min(1)], {
  error: "a text, or a list of messages with a role and a text",
});

const toolColumns = z.looseObject({
  extra_info: z
    .looseObject({
      tools_kwargs: z.record(z.string(), z.unknown()).nullish(),
      tool_selection: z.array(z.string()).nullish(),
    })
    .nullish(),
  tools_kwargs: z.record(z.string(), z.unknown()).nullish(),
  tool_selection: z.array(z.string()).nullish(),
});

const rowSchema = z.looseObject({ prompt, ...toolColumns.shape });

type Row = Readonly<Record<string, unknown>> | undefined;

/** What a row says about tools. */
export interface RowTools {
  /** Maps the names of tools to what this row gives them. */
  readonly toolsKwargs: Readonly<Record<string, unknown>>;
  /** Tools that this row may use; undefined = all. */
  readonly toolSelection: readonly string[] | undefined;
}

/**
 * The messages that a row begins with; a string is one message of the user.
 * @throws {BadRowError} when the task has no row, or its row no prompt.
 */
export function promptOfRow(task: { readonly id: string; readonly row: Row }): readonly ChatMessage[] {
  if (task.row === undefined) {
    throw new BadRowError(task.id, "this agent needs a row of a dataset, but the task is an environment");
  }
  const { prompt: asked } = parse(rowSchema, task.id, task.row);
  return typeof asked === "string" ? [{ role: "user", content: asked }] : asked;
}

/** Reads `tools_kwargs` and `tool_selection` from the row itself or, as in verl, from its `extra_info`. @throws {BadRowError} */
export function toolsOfRow(task: { readonly id: string; readonly row: Row }): RowTools {
  const { extra_info: extra, ...row } = parse(toolColumns, task.id, task.row ?? {});
  return {
    toolsKwargs: row.tools_kwargs ?? extra?.tools_kwargs ?? {},
    toolSelection: row.tool_selection ?? extra?.tool_selection ?? undefined,
  };
}

const groundTruthColumns = z.looseObject({
  reward_model: z.looseObject(
    {
      ground_truth: z.union([z.string(), z.number().transform(String)], {
        error: "the right answer, a text or a number",
      }),
    },
    { error: "an object with the right answer as `ground_truth`" },
  ),
});

/**
 * The right answer that a row holds, as text; a number is written as in JSON.
 * @throws {BadRowError} when it holds none.
 */
export function groundTruthOfRow(task: { readonly id: string; readonly row: Row }): string {
  return parse(groundTruthColumns, task.id, task.row ?? {}).reward_model.ground_truth;
}

function parse<T>(schema: z.ZodType<T>, taskId: string, row: NonNullable<Row>): T {
  const parsed = schema.safeParse(row);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const value: unknown = issue?.path.reduce<unknown>(childOf, row);
  const problem = `\`${issue?.path.join(".")}\` must be ${issue?.message}, but is ${shown(value)}`;
  throw new BadRowError(taskId, problem);
}

function objectOf(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = parseJson(json);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The agent that a row asks for instead of its run's agent, and the path of its file. */
export function agentOfRow(row: Readonly<Record<string, unknown>> | undefined): {
  readonly name: string | undefined;
  readonly configPath: string | undefined;
} {
  return { name: textOf(row?.agent_name), configPath: textOf(row?.agent_cfg_path) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function childOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}

const MAX_SHOWN_CHARACTERS = 200;

function shown(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value).slice(0, MAX_SHOWN_CHARACTERS);
}
