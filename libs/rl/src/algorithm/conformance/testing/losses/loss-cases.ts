/** The golden cases that rows of losses claim, each as a task for an engine and the check of its answer. */

import { golden, Question } from "../golden.ts";
import { assertAnswered, isAnswered } from "../row.ts";
import { LOSS_ROWS } from "../table.ts";
import { asExpression } from "./as-expression.ts";
import type { LossAnswer, LossTask } from "./loss-row.ts";

export { ENTROPY_CASES, type EntropyCase } from "./entropy-cases.ts";
export type { LossAnswer, LossTask };

export interface LossCase {
  readonly name: string;
  /** Hone's name of what is asked. */
  readonly hone: string;
  readonly task: LossTask;
  /** @throws AssertionError where the answer is not the case's, or not the one that the row states for a quirk */
  assertAnswered(answer: LossAnswer): void;
}

export const LOSS_CASES: readonly LossCase[] = golden.cases.flatMap((each) => {
  const row = LOSS_ROWS.find((candidate) => isAnswered(candidate, each));
  const question = new Question(each);
  const asked = row?.ask(question);
  if (row === undefined || asked === undefined) return [];
  const check = (answer: LossAnswer) =>
    assertAnswered({ ...row, answer: () => asked.check(answer) }, question);
  const { name } = each;
  const written = asExpression(asked.task);
  return [
    { name, hone: row.hone, task: asked.task, assertAnswered: check },
    ...(written === undefined
      ? []
      : [{ name, hone: "loss.kind: module", task: written, assertAnswered: check }]),
  ];
});
