/**
 * The common row schema of agent data sets, as verl's and ChatLearn's users have it:
 * `data_source, prompt, ability, reward_model: { style, ground_truth }, extra_info, agent_name, agent_cfg_path`.
 *
 * Only `prompt` is required; columns beside these are passed on as they are.
 */

import type { ChatMessage } from "@hone/tokenizer";
import { z } from "zod";
import { BadRowError } from "./errors.ts";

/** Text, or the text parts of OpenAI's messages. */
const content = z.union([
  z.string(),
  z
    .array(z.object({ type: z.literal("text"), text: z.string() }))
    .transform((parts) => parts.map(({ text }) => text).join("")),
]);

const message = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content,
});

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

/** What a row says of tools. */
export interface RowTools {
  /** Of a tool's name: what this row gives the tool. */
  readonly toolsKwargs: Readonly<Record<string, unknown>>;
  /** Tools that this row may use; undefined = all. */
  readonly toolSelection: readonly string[] | undefined;
}

/**
 * The messages that a row begins with; a text is one message of the user.
 * @throws {BadRowError} when the task has no row, or its row no prompt.
 */
export function promptOfRow(task: { readonly id: string; readonly row: Row }): readonly ChatMessage[] {
  if (task.row === undefined) throw new BadRowError(task.id, "the task must be a row of a dataset", "none");
  const { prompt: asked } = parse(rowSchema, task.id, task.row);
  return typeof asked === "string" ? [{ role: "user", content: asked }] : asked;
}

/** Columns of this name, in the row itself or, as verl has them, in its `extra_info`. @throws {BadRowError} */
export function toolsOfRow(task: { readonly id: string; readonly row: Row }): RowTools {
  const { extra_info: extra, ...row } = parse(toolColumns, task.id, task.row ?? {});
  return {
    toolsKwargs: row.tools_kwargs ?? extra?.tools_kwargs ?? {},
    toolSelection: row.tool_selection ?? extra?.tool_selection ?? undefined,
  };
}

function parse<T>(schema: z.ZodType<T>, taskId: string, row: NonNullable<Row>): T {
  const parsed = schema.safeParse(row);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const value: unknown = issue?.path.reduce<unknown>(childOf, row);
  throw new BadRowError(taskId, `\`${issue?.path.join(".")}\` must be ${issue?.message}`, shown(value));
}

/** The agent that a row asks for, beside that of its run; its files come by the name `agent_cfg_path`. */
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
