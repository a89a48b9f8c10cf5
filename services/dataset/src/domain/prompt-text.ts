/** The text of a row's prompt, for filters. */

/** A text as it is, messages one after the other with their roles; empty where the row has no prompt. */
export function promptTextOf(row: Readonly<Record<string, unknown>>): string {
  const { prompt } = row;
  if (typeof prompt === "string") return prompt;
  if (!Array.isArray(prompt)) return "";
  const texts = prompt.map((message: unknown) =>
    typeof message === "object" && message !== null
      ? { role: textOf(Reflect.get(message, "role")), content: textOf(Reflect.get(message, "content")) }
      : { role: "", content: textOf(message) },
  );
  // Roles alone are no prompt.
  if (texts.every(({ content }) => content.trim() === "")) return "";
  return texts.map(({ role, content }) => `${role}\n${content}\n`).join("");
}

/** Parts of a message other than text (images) count by their JSON. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
