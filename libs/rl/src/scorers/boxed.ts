/** The answer that stands in a box, `\boxed{…}`, as solutions of the MATH data set give it. */

const BOX = "\\boxed";
/** TeX takes the next token of a box without braces; solutions write such a box inside `$…$`. */
const BARE_BOX = "\\boxed ";

/**
 * What the last box of a text holds; undefined where there is none, or the last one is not closed.
 * A box without braces (`\boxed 5$`) goes up to the next dollar sign and comes before those with braces.
 */
export function lastBoxed(text: string): string | undefined {
  const bare = text.lastIndexOf(BARE_BOX);
  if (bare >= 0) return text.slice(bare + BARE_BOX.length).split("$", 1)[0];
  const box = text.lastIndexOf(BOX);
  if (box < 0) return undefined;
  const begin = box + BOX.length;
  // Such as \boxedtext{…}: a command of another name.
  if (text[begin] !== "{") return undefined;
  const end = closingBrace(text, begin);
  return end === undefined ? undefined : text.slice(begin + 1, end);
}

/** What the last `\boxed{…}` of a text holds; undefined where there is none, or the last one is not closed. */
export function lastBracedBox(text: string): string | undefined {
  const box = text.lastIndexOf(`${BOX}{`);
  if (box < 0) return undefined;
  const begin = box + BOX.length;
  const end = closingBrace(text, begin);
  return end === undefined ? undefined : text.slice(begin + 1, end);
}

/** Position of the brace that closes the one at `open`. */
function closingBrace(text: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return undefined;
}
