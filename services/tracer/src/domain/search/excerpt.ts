/** The place in a rollout where a search found something, with the text around it. */

import type { PlacedText, TextPlace } from "./rollout-texts.ts";
import { termsOf } from "./words.ts";

export interface Excerpt {
  readonly place: TextPlace;
  readonly turn: number | null;
  readonly before: string;
  readonly match: string;
  readonly after: string;
}

const CHARACTERS_BEFORE = 50;
const CHARACTERS_AFTER = 90;

/**
 * Makes a function that finds the first place.
 * @param place undefined = any.
 * @returns undefined where the words are found in their compared form only, such as full-width letters.
 */
export function excerptFinder(
  query: string,
  place: TextPlace | undefined,
): (texts: Iterable<PlacedText>) => Excerpt | undefined {
  const wanted = termsOf(query).flatMap((term) =>
    term === "or" || term.isExcluded ? [] : [patternOf(term.words)],
  );
  if (wanted.length === 0) return () => undefined;
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}\\p{M}])(?:${wanted.join("|")})(?![\\p{L}\\p{N}\\p{M}])`,
    "iu",
  );
  return function findExcerpt(texts) {
    for (const { text, ...at } of texts) {
      if (place !== undefined && at.place !== place) continue;
      const match = pattern.exec(text);
      if (match === null) continue;
      const end = match.index + match[0].length;
      return {
        ...at,
        before: text.slice(Math.max(0, match.index - CHARACTERS_BEFORE), match.index),
        match: match[0],
        after: text.slice(end, end + CHARACTERS_AFTER),
      };
    }
    return undefined;
  };
}

/** Words that follow one another, with anything between them that is no word; at most a few characters, so that it stays fast. */
function patternOf(words: string): string {
  return words.split(" ").join("[^\\p{L}\\p{N}\\p{M}]{0,8}");
}
