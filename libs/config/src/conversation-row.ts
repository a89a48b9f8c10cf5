/**
 * A dataset row that is a conversation to learn from: `messages`, or `prompt` with `response`.
 *
 * `prompt` is a text, which the user says, or a list of messages; `response` is what the assistant answers. A row with
 * `messages` needs neither. Other columns are left alone.
 */

/** One message, in the shape that chat templates read. */
export interface RowMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
}

export type ConversationRow =
  | { readonly kind: "conversation"; readonly messages: readonly RowMessage[] }
  /** "must …", as the rest of a sentence about the row. */
  | { readonly kind: "wrong"; readonly problem: string };

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);
const ROLE_NAMES = "system, user, assistant or tool";

/** Reads a row, or says what is wrong with it. */
export function readConversationRow(row: Readonly<Record<string, unknown>>): ConversationRow {
  // Parquet's files say nothing with a null.
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
  if (first === 0) return { kind: "wrong", problem: `must begin its ${column} with what is answered` };
  return { kind: "conversation", messages };
}
