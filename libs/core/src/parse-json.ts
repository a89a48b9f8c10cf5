/** Parsing JSON from outside, with a limit on its depth. */

/** Levels of lists and objects. A recursive function that walks over deeply nested data would exceed the call stack. */
export const MAX_JSON_DEPTH = 64;

/**
 * Parses JSON that is nested no deeper than {@link MAX_JSON_DEPTH}.
 * @throws {SyntaxError} when the text is not JSON, or is nested deeper.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null && isDeep(text)) {
    throw new SyntaxError(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  }
  return value;
}

/** Counts brackets outside of strings; the text must be valid JSON. */
function isDeep(text: string): boolean {
  // Each level takes at least two characters.
  if (text.length < 2 * MAX_JSON_DEPTH) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Position of the closing quote. */
function endOfString(text: string, begin: number): number {
  for (let at = begin + 1; ; ) {
    const quote = text.indexOf('"', at);
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote;
    at = quote + 1;
  }
}
