/** Answers for tests of the judge `python`. */

import { readFileSync } from "node:fs";
import path from "node:path";

/** Number of cases of each file that the usual tests run; python.full.test.ts runs the others. */
export const NUM_CASES = 9;
/** The tests of an answer that has none of its own. */
export const SOLVE_TESTS = "assert solve([3, 1, 2]) == [1, 2, 3]\nassert solve([]) == []";

/** The answers of a file with their tests; its first lines describe the format. */
export function casesIn(
  file: "honest.py" | "attacks.py",
): (readonly [name: string, code: string, tests: string])[] {
  const text = readFileSync(path.join(import.meta.dirname, "fixtures", file), "utf8");
  const [, ...parts] = text.split(/^#### (?!tests$)/m);
  return parts.map((part) => {
    const [code = "", tests = SOLVE_TESTS] = part.slice(part.indexOf("\n") + 1).split("#### tests\n");
    return [part.slice(0, part.indexOf("\n")), code, tests] as const;
  });
}
