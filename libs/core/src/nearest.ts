/** Suggestions for mistyped names. */

/** The time of a comparison grows with the product of the lengths, and longer names are hardly mistyped names. */
const MAX_MISTYPED_CHARACTERS = 64;

/** @returns the candidate with the smallest edit distance to `name`, if it is close enough to be a typing mistake. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > MAX_MISTYPED_CHARACTERS) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 2)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, computed one row at a time. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}
