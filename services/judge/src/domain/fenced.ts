/** Fenced blocks, as models wrap code in. */

const FENCE = "```";

/** What the last block of a text holds; undefined where there is none. */
export function lastFenced(text: string): string | undefined {
  const end = text.lastIndexOf(FENCE);
  const begin = end <= 0 ? -1 : text.lastIndexOf(FENCE, end - 1);
  if (begin < 0) return undefined;
  const block = text.slice(begin + FENCE.length, end);
  // The line of the fence names the language.
  return block.slice(block.indexOf("\n") + 1);
}
