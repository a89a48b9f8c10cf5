/**
 * Answers to GSM8K questions, as the field scores them.
 *
 * Strict: the last `#### <number>` of the last 300 characters, without commas and dollar signs, is the text asked for.
 * Flexible: the last number of the whole text is. Both compare texts, so `72.0` is not `72`.
 */

import { lastCharacters } from "./last-characters.ts";

/** How an answer is found in a solution. */
export const Gsm8kMethod = {
  /** After `####`, near the end. */
  strict: "strict",
  /** The last number. */
  flexible: "flexible",
} as const;
export type Gsm8kMethod = (typeof Gsm8kMethod)[keyof typeof Gsm8kMethod];

/** An answer stands at the end; what a model quotes of the task before does not count. */
const STRICT_CHARACTERS = 300;
const MARKED_NUMBER = /#### (-?[0-9.,]+)/g;
const NUMBER = /-?[0-9.,]+/g;

/** @returns 1 where the solution's answer is the ground truth, 0 otherwise. */
export function scoreGsm8k(solution: string, groundTruth: string, method: Gsm8kMethod): number {
  return gsm8kAnswer(solution, method) === groundTruth ? 1 : 0;
}

/** The answer that a solution gives; undefined where it gives none. */
export function gsm8kAnswer(solution: string, method: Gsm8kMethod): string | undefined {
  if (method === Gsm8kMethod.flexible) {
    return solution
      .match(NUMBER)
      ?.map(withoutStop)
      .findLast((number) => number !== "" && number !== "-");
  }
  const marked = [...lastCharacters(solution, STRICT_CHARACTERS).matchAll(MARKED_NUMBER)].at(-1)?.[1];
  return marked?.replaceAll(",", "").replaceAll("$", "");
}

/** The full stop or comma of the sentence is no part of the number. */
function withoutStop(number: string): string {
  let end = number.length;
  while (number[end - 1] === "." || number[end - 1] === ",") end--;
  return number.slice(0, end);
}
