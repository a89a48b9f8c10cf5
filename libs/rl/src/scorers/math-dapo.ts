/**
 * Answers as DAPO (arXiv 2503.14476) asks for them: a last line `Answer: …`, compared after the normalisation of Minerva
 * (Lewkowycz et al., arXiv 2206.14858, appendix D.1). Right is worth 1, everything else -1.
 */

import { lastCharacters } from "./last-characters.ts";

/** The word of the scorer, with what it read. */
export interface DapoScore {
  /** 1 or -1. */
  readonly score: number;
  /** 1 or 0. */
  readonly accuracy: number;
  /** The answer, normalised; undefined where there is none. */
  readonly prediction: string | undefined;
}

const CONSIDERED_CHARACTERS = 300;
const ANSWER = /answer\s*:\s*([^\n]+)/gi;

export function scoreMathDapo(solution: string, groundTruth: string): DapoScore {
  const stated = [...lastCharacters(solution, CONSIDERED_CHARACTERS).matchAll(ANSWER)].at(-1)?.[1];
  const prediction = stated === undefined ? undefined : normalizeFinalAnswer(stated);
  const isRight = prediction !== undefined && prediction === normalizeFinalAnswer(groundTruth);
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

const WHOLE_NUMBER = /^[0-9]+$/;

/** The normal form of an answer: without names, units and wrapping, numbers without commas. */
export function normalizeFinalAnswer(answer: string): string {
  let text = answer.split("=").at(-1) ?? "";
  for (const [from, to] of SUBSTITUTIONS) text = text.replaceAll(from, to);
  for (const removed of REMOVED) text = text.replaceAll(removed, "");
  for (const [from, to] of REWRITINGS) text = text.replace(from, to);
  const digits = text.replaceAll(",", "");
  return (WHOLE_NUMBER.test(digits) ? digits : text).trim();
}
