/** Fenced blocks, in which models write code. */

const FENCE = "```";

/** The content of the last fenced block in a text; undefined where there is none. */
export function lastFenced(text: string): string | undefined {
  const end = text.lastIndexOf(FENCE);
  const begin = end <= 0 ? -1 : text.lastIndexOf(FENCE, end - 1);
  if (begin < 0) return undefined;
  const block = text.slice(begin + FENCE.length, end);
  // The first line holds the name of the language.
  return block.slice(block.indexOf("\n") + 1);
}
