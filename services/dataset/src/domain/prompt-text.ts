/** The text of a row's prompt, which filters look at. */

/** @returns a prompt that is a text as it is, messages one after the other with their roles, or "" where there is no prompt. */
export function promptTextOf(row: Readonly<Record<string, unknown>>): string {
  const { prompt } = row;
  if (typeof prompt === "string") return prompt;
  if (!Array.isArray(prompt)) return "";
  const texts = prompt.map((message: unknown) =>
    typeof message === "object" && message !== null
      ? { role: textOf(Reflect.get(message, "role")), content: textOf(Reflect.get(message, "content")) }
      : { role: "", content: textOf(message) },
  );
  // Messages that have roles and no content count as an empty prompt.
  if (texts.every(({ content }) => content.trim() === "")) return "";
  return texts.map(({ role, content }) => `${role}\n${content}\n`).join("");
}

/** Content that is not text, such as images, is represented by its JSON. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
