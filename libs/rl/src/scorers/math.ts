/**
 * Answers to questions of the MATH data set: the last box of the solution, equal to the ground truth once both are
 * written in one way. The rules are those of the data set's own evaluation (Hendrycks et al., "Measuring mathematical
 * problem solving with the MATH dataset", 2021), which every trainer of the field repeats: equality of texts, no algebra.
 */

import { lastBoxed } from "./boxed.ts";

/** @returns 1 where the last box of the solution equals the ground truth, 0 otherwise. */
export function scoreMath(solution: string, groundTruth: string): number {
  const answer = lastBoxed(solution);
  return answer !== undefined && isSameAnswer(answer, groundTruth) ? 1 : 0;
}

/** Whether two answers are the same once normalised; where one is too broken to be, whether they are the same text. */
export function isSameAnswer(a: string, b: string): boolean {
  const normalA = normalizeMath(a);
  const normalB = normalizeMath(b);
  return normalA === undefined || normalB === undefined ? a === b : normalA === normalB;
}

/** What is replaced wherever it stands, in this order, before units are cut off. */
const FIRST_REPLACEMENTS: readonly (readonly [from: string, to: string])[] = [
  ["\n", ""],
  ["\\!", ""],
  ["\\\\", "\\"],
  ["tfrac", "frac"],
  ["dfrac", "frac"],
  ["\\left", ""],
  ["\\right", ""],
  ["^{\\circ}", ""],
  ["^\\circ", ""],
  ["\\$", ""],
];

/** A unit on the right is written as text that begins with a space. */
const UNIT = "\\text{ ";

/** And after. */
const LAST_REPLACEMENTS: readonly (readonly [from: string, to: string])[] = [
  ["\\%", ""],
  [" .", " 0."],
  ["{.", "{0."],
];

/** `x=` and `k =` name the unknown; what is longer is part of the answer. */
const MAX_NAME_CHARACTERS = 2;

/** An answer in its normal form; undefined where a root or a fraction is of nothing, or two units follow each other. */
export function normalizeMath(answer: string): string | undefined {
  let text = replaceAll(answer, FIRST_REPLACEMENTS);
  const [value = "", ...units] = text.split(UNIT);
  if (units.length > 1) return undefined;
  text = replaceAll(value, LAST_REPLACEMENTS);
  if (text === "") return text;
  if (text.startsWith(".")) text = `0${text}`;
  const sides = text.split("=");
  const [name = "", right = ""] = sides;
  if (sides.length === 2 && Array.from(name).length <= MAX_NAME_CHARACTERS) text = right;
  const rooted = braceRoots(text);
  if (rooted === undefined) return undefined;
  const divided = braceFractions(rooted.replaceAll(" ", ""));
  if (divided === "0.5") return "\\frac{1}{2}";
  return divided === undefined ? undefined : simpleFraction(divided);
}

function replaceAll(text: string, replacements: readonly (readonly [from: string, to: string])[]): string {
  return replacements.reduce((current, [from, to]) => current.replaceAll(from, to), text);
}

/** `\sqrt3` becomes `\sqrt{3}`; undefined where nothing stands under the root. */
function braceRoots(text: string): string | undefined {
  const [before = "", ...roots] = text.split("\\sqrt");
  if (roots.includes("")) return undefined;
  return roots.reduce((built, root) => {
    if (root.startsWith("{")) return `${built}\\sqrt${root}`;
    const [first = "", ...rest] = root;
    return `${built}\\sqrt{${first}}${rest.join("")}`;
  }, before);
}

/** `\frac12` and `\frac1{2}` become `\frac{1}{2}`; half a fraction (`\frac1`) leaves all of them as they are. */
function braceFractions(text: string): string | undefined {
  const [before = "", ...fractions] = text.split("\\frac");
  let built = before;
  for (const fraction of fractions) {
    const [top = "", bottom = "", ...rest] = fraction;
    if (top === "") return undefined;
    if (top === "{") built += `\\frac${fraction}`;
    else if (bottom === "") return text;
    else built += `\\frac{${top}}${bottom === "{" ? "{" : `{${bottom}}`}${rest.join("")}`;
  }
  return built;
}

/** Whole numbers as they are written, without leading zeros. */
const SIMPLE_FRACTION = /^(0|-?[1-9][0-9]*)\/(0|-?[1-9][0-9]*)$/;

/** `3/4` becomes `\frac{3}{4}`. */
function simpleFraction(text: string): string {
  const match = SIMPLE_FRACTION.exec(text);
  return match === null ? text : `\\frac{${match[1]}}{${match[2]}}`;
}
