/**
 * A dataset row that holds a conversation to train on: `messages`, or `prompt` with `response`.
 *
 * `prompt` is the user's text or a list of messages; `response` is the assistant's answer. A row with `messages` needs
 * neither. Other columns are ignored.
 */

/** One message, in the form that chat templates read. */
export interface RowMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
}

export type ConversationRow =
  | { readonly kind: "conversation"; readonly messages: readonly RowMessage[] }
  /** The end of a sentence about the row, which begins with "must". */
  | { readonly kind: "wrong"; readonly problem: string };

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);
const ROLE_NAMES = "system, user, assistant or tool";

/** Reads a row, or says what is wrong with it. */
export function readConversationRow(row: Readonly<Record<string, unknown>>): ConversationRow {
  // In Parquet files a missing value is null.
  if (row.messages !== undefined && row.messages !== null) return fromMessages(row.messages, "messages");
  if (row.prompt === undefined || row.prompt === null) {
    return { kind: "wrong", problem: "must have messages, or a prompt and a response" };
  }
  const prompt =
    typeof row.prompt === "string" ? [{ role: "user", content: row.prompt }] : (row.prompt as unknown);
  if (typeof row.response !== "string" || row.response === "") {
    return { kind: "wrong", problem: "must have a non-empty text as response" };
  }
  if (!Array.isArray(prompt)) {
    return { kind: "wrong", problem: "must have a text or a list of messages as prompt" };
  }
  return fromMessages([...prompt, { role: "assistant", content: row.response }], "prompt");
}

function fromMessages(value: unknown, column: string): ConversationRow {
  if (!Array.isArray(value)) return { kind: "wrong", problem: `must have a list as ${column}` };
  const messages: RowMessage[] = [];
  for (const [i, message] of value.entries()) {
    const isObject = typeof message === "object" && message !== null;
    const { role, content } = isObject ? (message as Record<string, unknown>) : {};
    if (!ROLES.has(role)) {
      return { kind: "wrong", problem: `must have ${ROLE_NAMES} as role of ${column}[${i}]` };
    }
    if (typeof content !== "string") {
      return { kind: "wrong", problem: `must have a text as content of ${column}[${i}]` };
    }
    messages.push({ role: role as RowMessage["role"], content });
  }
  const first = messages.findIndex(({ role }) => role === "assistant");
  if (first < 0) return { kind: "wrong", problem: `must have an assistant's message among its ${column}` };
  if (first === 0)
    return { kind: "wrong", problem: `must begin its ${column} with one that the assistant answers` };
  return { kind: "conversation", messages };
}
