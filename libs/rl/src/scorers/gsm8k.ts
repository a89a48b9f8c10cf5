/**
 * Scores answers to GSM8K questions as verl's `gsm8k` does.
 *
 * Both of verl's methods look at the last 300 characters and compare texts, so `72.0` and `72.` are not `72`.
 * Where verl is too strict for a task, `last_number` reads more kindly; it is ours, so it has a name of its own.
 */

import { lastCharacters } from "./last-characters.ts";

/** How an answer is found in a solution. */
export const Gsm8kMethod = {
  /** The last number after `#### `, without its commas. */
  strict: "strict",
  /** The last number as it stands, with the full stop or the commas that touch it. */
  flexible: "flexible",
  /** The last number anywhere in the solution, without the full stop or comma that ends its sentence. */
  lastNumber: "last_number",
} as const;
export type Gsm8kMethod = (typeof Gsm8kMethod)[keyof typeof Gsm8kMethod];

/** The answer stands at the end; verl cuts off what comes before. */
const CONSIDERED_CHARACTERS = 300;
const MARKED_NUMBER = /#### (-?[0-9.,]+)/g;
const NUMBER = /-?[0-9.,]+/g;

/** @returns 1 where the solution's answer is the ground truth, 0 otherwise. */
export function scoreGsm8k(solution: string, groundTruth: string, method: Gsm8kMethod): number {
  return gsm8kAnswer(solution, method) === groundTruth ? 1 : 0;
}

/** The answer that a solution gives; undefined where it gives none. */
export function gsm8kAnswer(solution: string, method: Gsm8kMethod): string | undefined {
  switch (method) {
    case Gsm8kMethod.strict:
      return [...lastCharacters(solution, CONSIDERED_CHARACTERS).matchAll(MARKED_NUMBER)]
        .at(-1)?.[1]
        ?.replaceAll(",", "");
    case Gsm8kMethod.flexible: {
      const numbers = lastCharacters(solution, CONSIDERED_CHARACTERS).match(NUMBER) ?? [];
      // Where nothing but full stops is found, verl's loop ends at the first of them.
      return numbers.findLast((number) => number !== ".") ?? numbers[0];
    }
    case Gsm8kMethod.lastNumber:
      return solution
        .match(NUMBER)
        ?.map(withoutStop)
        .findLast((number) => number !== "" && number !== "-");
  }
}

/** The full stop or comma of the sentence is no part of the number. */
function withoutStop(number: string): string {
  let end = number.length;
  while (number[end - 1] === "." || number[end - 1] === ",") end--;
  return number.slice(0, end);
}
