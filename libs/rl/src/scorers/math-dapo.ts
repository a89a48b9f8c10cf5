/**
 * Scores answers as verl's `math_dapo` does, which DAPO (arXiv 2503.14476) trains with: the last line `Answer: …`, compared
 * after the normalisation of Minerva (Lewkowycz et al., arXiv 2206.14858, appendix D.1). Where no such line is found, the last
 * `\boxed{…}` near the end counts, and must be the ground truth as it stands. Right is worth 1, everything else -1.
 */

import { lastBracedBox } from "./boxed.ts";
import { lastCharacters } from "./last-characters.ts";
import { isPythonDigits, PYTHON_SPACE, pythonStrip } from "./python-text.ts";

/** What the scorer says, with what it read. */
export interface DapoScore {
  /** 1 or -1. */
  readonly score: number;
  /** 1 or 0. */
  readonly accuracy: number;
  /** The answer that was compared; {@link NO_ANSWER} where there is none. */
  readonly prediction: string;
}

/** What verl compares where a solution states no answer. */
export const NO_ANSWER = "[INVALID]";

const CONSIDERED_CHARACTERS = 300;
/** A box counts only nearer to the end than an `Answer:` line must be. */
const BOX_CHARACTERS = 100;
const ANSWER = new RegExp(`answer[${PYTHON_SPACE}]*:[${PYTHON_SPACE}]*([^\\n]+)`, "giu");

export function scoreMathDapo(solution: string, groundTruth: string): DapoScore {
  const end = lastCharacters(solution, CONSIDERED_CHARACTERS);
  const prediction = normalizeFinalAnswer([...end.matchAll(ANSWER)].at(-1)?.[1] ?? NO_ANSWER);
  const box = prediction === NO_ANSWER ? lastBracedBox(lastCharacters(end, BOX_CHARACTERS)) : undefined;
  return box === undefined
    ? scored(prediction, prediction === normalizeFinalAnswer(groundTruth))
    : scored(box, box === groundTruth);
}

function scored(prediction: string, isRight: boolean): DapoScore {
  return { score: isRight ? 1 : -1, accuracy: isRight ? 1 : 0, prediction };
}

/** Replaced in this order. */
const SUBSTITUTIONS: readonly (readonly [from: string, to: string])[] = [
  ["an ", ""],
  ["a ", ""],
  [".$", "$"],
  ["\\$", ""],
  ["\\ ", ""],
  [" ", ""],
  ["mbox", "text"],
  [",\\text{and}", ","],
  ["\\text{and}", ","],
  ["\\text{m}", "\\text{}"],
];

/** Units and ornaments, removed in this order wherever they stand. */
const REMOVED: readonly string[] = [
  ..."square ways integers dollars mph inches hours km units".split(" "),
  "\\ldots",
  ..."sue points feet minutes digits cents degrees cm gm pounds meters meals edges students".split(" "),
  "childrentickets",
  "multiples",
  "\\text{s}",
  "\\text{.}",
  "\\text{\ns}",
  "\\text{}^2",
  "\\text{}^3",
  "\\text{\n}",
  "\\text{}",
  "\\mathrm{th}",
  "^\\circ",
  "^{\\circ}",
  "\\;",
  ",\\!",
  "{,}",
  '"',
  "\\dots",
];

/** What is taken out of its wrapping, in this order. */
const REWRITINGS: readonly (readonly [from: RegExp, to: string])[] = [
  // The first formula of the line is the answer.
  [/[^\n]*?\$([^\n]*?)\$[^\n]*/g, "$$$1$$"],
  [/\\text\{([^\n]*?)\}/g, "$1"],
  [/\\textbf\{([^\n]*?)\}/g, "$1"],
  [/\\overline\{([^\n]*?)\}/g, "$1"],
  [/\\boxed\{([^\n]*)\}/g, "$1"],
  [/frac([^{])([^\n])/g, "frac{$1}{$2}"],
  [/sqrt([^{])/g, "sqrt{$1}"],
  [/\$/g, ""],
];

/** The normal form of an answer: without names, units and wrapping, numbers without commas. */
export function normalizeFinalAnswer(answer: string): string {
  let text = answer.split("=").at(-1) ?? "";
  for (const [from, to] of SUBSTITUTIONS) text = text.replaceAll(from, to);
  for (const removed of REMOVED) text = text.replaceAll(removed, "");
  for (const [from, to] of REWRITINGS) text = text.replace(from, to);
  const digits = text.replaceAll(",", "");
  return pythonStrip(isPythonDigits(digits) ? digits : text);
}
