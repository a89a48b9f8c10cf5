/**
 * Reads what servers of environments answer. Everything in an answer is distrusted: its shape, its numbers, and the number and
 * size of its entries.
 */

import type { EnvironmentInfo, EnvironmentMessage } from "@hone/agents";
import { parseJson } from "@hone/core";
import { TurnInfo } from "@hone/rl";
import { z } from "zod";
import type { ServiceState } from "./service-session.ts";

/** Rewards are squared and summed over batches, which must stay finite and exact enough. */
const MAX_REWARD = 1_000_000_000;
const MAX_MESSAGES = 256;
/** `info` is stored with every turn. */
const MAX_INFO_ENTRIES = 32;
const MAX_INFO_CHARACTERS = 512;
const INFO_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** Entries that Hone itself writes. */
const OWN_INFO_KEYS: ReadonlySet<string> = new Set([
  TurnInfo.invalidToolCalls,
  TurnInfo.controlTokens,
  "role",
]);
const SHOWN_CHARACTERS = 300;

/** An answer that cannot be read. The caller says whose it is. */
export class UnreadableReplyError extends Error {}

/** A finite number of a sensible size; some servers give a truth value. */
export const rewardSchema = z
  .union([z.number().min(-MAX_REWARD).max(MAX_REWARD), z.boolean()])
  .transform(Number);

const messageSchema = z.looseObject({
  role: z.string().max(64),
  /** A text, or parts of which each is a text. */
  content: z.union([z.string(), z.null(), z.array(z.looseObject({ text: z.string() }))]),
});
export const messagesSchema = z.array(messageSchema).max(MAX_MESSAGES);
const stateSchema = z.looseObject({
  state: z.union([messageSchema.transform((one) => [one]), messagesSchema]),
  reward: rewardSchema.nullish(),
  info: z.record(z.string(), z.unknown()).nullish(),
});
const createdSchema = stateSchema.extend({ is_terminated: z.boolean().nullish() });
const steppedSchema = stateSchema.extend({ is_terminated: z.boolean() });

/** @throws {UnreadableReplyError} when the text is not JSON. */
export function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new UnreadableReplyError(`it is not JSON: ${shown(text)}`);
  }
}

/** Reads AgentJet's state of an episode. @throws {UnreadableReplyError} that names what is wrong. */
export function readServiceState(data: unknown, verb: "create" | "step"): ServiceState {
  const { state, reward, is_terminated, info } = readAs(
    verb === "create" ? createdSchema : steppedSchema,
    data,
  );
  if (verb === "create" && state.length === 0) throw new UnreadableReplyError("`state` has no message");
  const messages = state.map(toMessage);
  const isOver = is_terminated ?? false;
  const isTruncated = isOver && info?.truncated === true;
  return {
    observation: messages.map(({ content }) => content).join("\n"),
    messages,
    reward: reward ?? 0,
    isTerminated: isOver && !isTruncated,
    isTruncated,
    info: readInfo(info ?? {}),
  };
}

/** Keeps the entries of an object that are single values with plain names. */
export function readInfo(given: Readonly<Record<string, unknown>>): EnvironmentInfo {
  const kept: Record<string, string | number | boolean | null> = {};
  let count = 0;
  for (const [key, value] of Object.entries(given)) {
    if (!INFO_KEY.test(key) || OWN_INFO_KEYS.has(key)) continue;
    const isKept =
      value === null ||
      typeof value === "boolean" ||
      (typeof value === "number" && Number.isFinite(value)) ||
      (typeof value === "string" && value.length <= MAX_INFO_CHARACTERS);
    if (!isKept) continue;
    if (count++ >= MAX_INFO_ENTRIES) break;
    kept[key] = value;
  }
  return kept;
}

/** @throws {UnreadableReplyError} that names the first key which is wrong. */
export function readAs<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const key = issue?.path.map(String).join(".") || "it";
  throw new UnreadableReplyError(
    `${key}: ${issue?.message}, in ${shown(JSON.stringify(value) ?? "nothing")}`,
  );
}

/** The beginning of a text from outside, for errors. */
export function shown(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** Roles such as `tool` or `env` are those of an environment, which a model knows as its user. */
export function toMessage({ role, content }: z.output<typeof messageSchema>): EnvironmentMessage {
  const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text).join("\n");
  return { role: role === "system" || role === "assistant" ? role : "user", content: text };
}
