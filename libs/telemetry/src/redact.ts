/** Keeping secrets out of logs and spans. */

/** The text that replaces a secret. */
export const REDACTED = "[redacted]";

/** Last words of names whose values are secrets. `tokens`, `tokenIds` and a bare `key` are everyday words here. */
const SECRET_WORDS = new Set([
  "password",
  "passwd",
  "passphrase",
  "pwd",
  "secret",
  "secrets",
  "token",
  "credential",
  "credentials",
  "authorization",
  "cookie",
  "apikey",
]);

/** Words that make a secret of a name that ends in `key`: `apiKey`, `HF_ACCESS_KEY`, `private-key`. */
const SECRET_KEY_KINDS = new Set(["api", "access", "private", "secret", "signing", "encryption", "auth"]);

const URL_USERINFO = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/?#"'<>]*@/gi;
const BEARER = /\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}/gi;
const ASSIGNED_SECRET =
  /\b((?:[a-z0-9]+[_-])*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&,;"'})\]]+)/gi;

/** Whether the value under this name is a secret. */
export function isSecretName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const last = words.at(-1);
  if (last === undefined) return false;
  if (SECRET_WORDS.has(last)) return true;
  return last === "key" && SECRET_KEY_KINDS.has(words.at(-2) ?? "");
}

/** A text without the userinfo of URLs, bearer tokens and `password=…` pairs. */
export function redactText(text: string): string {
  return text
    .replace(URL_USERINFO, `$1${REDACTED}@`)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(ASSIGNED_SECRET, `$1${REDACTED}`);
}

/**
 * A copy of a log field's value that is safe to print: secrets replaced by name and by shape, errors flattened,
 * bigints as text, depth and length bounded.
 */
export function redactValue(name: string, value: unknown, depth = 0): unknown {
  if (typeof value === "string") return isSecretName(name) ? REDACTED : redactText(clip(value));
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return typeof value === "function" ? "[function]" : value;
  if (isSecretName(name)) return REDACTED;
  if (depth >= MAX_DEPTH) return "[nested]";
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) {
    const shown: unknown[] = value.slice(0, MAX_ITEMS).map((item) => redactValue(name, item, depth + 1));
    if (value.length > MAX_ITEMS) shown.push(`[${value.length - MAX_ITEMS} more]`);
    return shown;
  }
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, MAX_ITEMS)
      .map(([key, entry]) => [key, redactValue(key, entry, depth + 1)]),
  );
}

/** A line of a log is for reading: longer texts belong in a file or a table. */
const MAX_TEXT_LENGTH = 8_192;
const MAX_ITEMS = 64;
const MAX_DEPTH = 5;

function clip(text: string): string {
  return text.length <= MAX_TEXT_LENGTH
    ? text
    : `${text.slice(0, MAX_TEXT_LENGTH)}… (${text.length} characters)`;
}

function redactError(error: Error, depth: number): unknown {
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    type: error.name,
    ...((typeof code === "string" || typeof code === "number") && { code }),
    message: redactText(clip(error.message)),
    ...(error.cause !== undefined && { cause: redactValue("cause", error.cause, depth + 1) }),
    ...(depth === 0 && error.stack !== undefined && { stack: redactText(clip(error.stack)) }),
  };
}
