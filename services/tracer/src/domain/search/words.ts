/**
 * Words as the full-text search compares them, for texts and for queries alike: in lower case and compatibility form, without
 * punctuation, so that `get_weather` and `src/main.ts` are several words each. Chinese and Japanese, which have no spaces, are
 * compared character by character.
 */

/** Words are cut here; PostgreSQL leaves out words of more than 2,046 bytes altogether. */
const MAX_WORD_CHARACTERS = 100;
const NO_WORD = /[^\p{L}\p{N}\p{M}]+/gu;
const WITHOUT_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu;

/** The words of a text, with one space between them. */
export function wordsOf(text: string): string {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .replace(NO_WORD, " ")
      .replace(WITHOUT_SPACES, " $& ")
      .split(" ")
      .filter((word) => word !== "")
      // A cut through a pair of code units would leave what no database can store.
      .map((word) => word.slice(0, MAX_WORD_CHARACTERS).toWellFormed())
      .join(" ")
  );
}

/** A part of what somebody searches for. */
export interface Term {
  /** One word, or several that follow one another. */
  readonly words: string;
  readonly isExcluded: boolean;
}

/** `"several words"`, `-excluded`, plain words. */
const TERM = /(-?)"([^"]*)"?|(\S+)/g;
/** A query of more terms is cut, as each costs time. */
const MAX_TERMS = 20;

/** Reads a query: words that must all occur, `"words in this order"`, `-word` for what must not, and `or` between alternatives. */
export function termsOf(query: string): readonly (Term | "or")[] {
  const terms: (Term | "or")[] = [];
  for (const [whole, minus = "", quoted] of query.matchAll(TERM)) {
    if (terms.length >= MAX_TERMS) break;
    if (whole.toLowerCase() === "or") {
      if (terms.length > 0 && terms.at(-1) !== "or") terms.push("or");
      continue;
    }
    const isExcluded = quoted === undefined ? whole.startsWith("-") && whole.length > 1 : minus === "-";
    const words = wordsOf(quoted ?? whole);
    if (words !== "") terms.push({ words, isExcluded });
  }
  while (terms.at(-1) === "or") terms.pop();
  return terms;
}

/**
 * A query in the form of PostgreSQL's `websearch_to_tsquery`, which takes any text without an error.
 * @returns undefined where the query has no word.
 */
export function searchQueryOf(query: string): string | undefined {
  const terms = termsOf(query);
  if (terms.every((term) => term === "or" || term.isExcluded)) return undefined;
  return terms
    .map((term) => (term === "or" ? "or" : `${term.isExcluded ? "-" : ""}"${term.words}"`))
    .join(" ");
}
