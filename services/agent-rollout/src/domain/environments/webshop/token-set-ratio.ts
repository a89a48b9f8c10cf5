/**
 * How alike two short texts are, whatever the order of their words: the token set ratio of the library TheFuzz, by which
 * WebShop compares attributes and options. It is 100 if all words of one text stand in the other.
 */

/**
 * @returns a whole number from 0 to 100; 0 if a text has no letter or digit.
 * @example tokenSetRatio("essential oils", "oil, essential"); // 96
 */
export function tokenSetRatio(a: string, b: string): number {
  const wordsA = wordsOf(a);
  const wordsB = wordsOf(b);
  if (wordsA.length === 0 || wordsB.length === 0) return 0;
  const common = wordsA.filter((word) => wordsB.includes(word)).join(" ");
  const onlyA = wordsA.filter((word) => !wordsB.includes(word)).join(" ");
  const onlyB = wordsB.filter((word) => !wordsA.includes(word)).join(" ");
  if (common !== "" && (onlyA === "" || onlyB === "")) return 100;
  // The words in common, those and the rest of a, those and the rest of b: the two that are most alike count.
  const withA = joined(common, onlyA);
  const withB = joined(common, onlyB);
  return Math.round(Math.max(ratio(common, withA), ratio(common, withB), ratio(withA, withB)));
}

/** The different words, sorted. */
function wordsOf(text: string): string[] {
  return [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu))].sort();
}

function joined(common: string, rest: string): string {
  return common === "" ? rest : `${common} ${rest}`;
}

/** Per cent of the characters that stand in both texts in the same order: 200 · LCS / (|a| + |b|). */
function ratio(a: string, b: string): number {
  return a === "" || b === "" ? 0 : (200 * commonSubsequence(a, b)) / (a.length + b.length);
}

/** Length of the longest common subsequence. */
function commonSubsequence(a: string, b: string): number {
  let previous = new Array<number>(b.length + 1).fill(0);
  for (const letter of a) {
    const current = [0];
    for (let index = 0; index < b.length; index++) {
      const best =
        letter === b[index] ? previous[index]! + 1 : Math.max(previous[index + 1]!, current[index]!);
      current.push(best);
    }
    previous = current;
  }
  return previous.at(-1)!;
}
