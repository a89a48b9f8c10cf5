/** The end of a text. */

/** The last `count` characters (code points, so that none is cut in two). */
export function lastCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  // A character has at most two code units.
  return Array.from(text.slice(-2 * count))
    .slice(-count)
    .join("");
}
