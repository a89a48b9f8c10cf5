/** The problems: little stories about two numbers, in the words that this example's tokenizer knows. */

import type { Random } from "@hone/core";

export type Operator = "+" | "-" | "*";
export const OPERATORS: readonly Operator[] = ["+", "-", "*"];

export interface Problem {
  readonly question: string;
  /** The larger one first, so that no answer is below 0. */
  readonly numbers: readonly [number, number];
  /** The result that the story asks for. */
  readonly operator: Operator;
}

const NAMES = ["Ann", "Ben", "Cid", "Dora", "Eli", "Fay"];
const THINGS = ["pens", "cups", "nuts", "books", "coins", "eggs"];

/** Three stories for each operator. A and B stand for the numbers. */
const STORIES: Readonly<Record<Operator, readonly string[]>> = {
  "+": [
    "NAME has A THINGS and finds B more. How many THINGS now?",
    "NAME buys A THINGS, then B THINGS. How many THINGS in all?",
    "A THINGS lie here and B there. How many THINGS in all?",
  ],
  "-": [
    "NAME has A THINGS and loses B. How many THINGS now?",
    "NAME gives B of A THINGS away. How many THINGS left?",
    "A THINGS lie here. NAME takes B. How many THINGS left?",
  ],
  "*": [
    "NAME has A bags with B THINGS each. How many THINGS in all?",
    "NAME buys B THINGS each day for A days. How many THINGS in all?",
    "A shelves hold B THINGS each. How many THINGS in all?",
  ],
};

/** Every word of the stories. */
export const WORDS: readonly string[] = [
  ...new Set(
    [...Object.values(STORIES).flat(), ...NAMES, ...THINGS]
      .flatMap((text) => text.match(/[A-Za-z]+/g) ?? [])
      .filter((word) => !["NAME", "THINGS", "A", "B"].includes(word)),
  ),
];

/** Numbers are from 2 to 29. */
export function tellProblem(random: Random): Problem {
  const operator = random.pick(OPERATORS);
  const low = 2 + random.nextInt(27);
  const high = low + 1 + random.nextInt(29 - low);
  const name = random.pick(NAMES);
  const question = random
    .pick(STORIES[operator])
    .replaceAll("THINGS", random.pick(THINGS))
    .replace("NAME", name)
    .replace(/\bA\b/, String(high))
    .replace(/\bB\b/, String(low));
  return { question, numbers: [high, low], operator };
}

/** Value of an expression of two numbers. */
export function resultOf([a, b]: readonly [number, number], operator: Operator): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
  }
}
