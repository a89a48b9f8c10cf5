/** Where Python reads text in another way than JavaScript, for scorers that must agree with one written in Python. */

/** What `\s` matches in Python, for use within a class of a regular expression. */
export const PYTHON_SPACE =
  "\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const OUTER_SPACE = new RegExp(`^[${PYTHON_SPACE}]+|[${PYTHON_SPACE}]+$`, "g");
/** Decimal digits of every script, and superscripts and the like. */
const DIGITS = /^[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+$/u;

/** `str.strip()`. */
export function pythonStrip(text: string): string {
  return text.replace(OUTER_SPACE, "");
}

/** `str.isdigit()`, but for enclosed numbers such as ①. */
export function isPythonDigits(text: string): boolean {
  return DIGITS.test(text);
}
