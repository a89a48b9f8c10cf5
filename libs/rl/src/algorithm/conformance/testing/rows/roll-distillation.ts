/** ROLL's on-policy distillation: advantages of rewards, or none, and what teachers add to them. */

import { addToTokens } from "../../../advantage/of-tokens.ts";
import { distillationAdvantages, distillationSchema } from "../../../distillation/distillation.ts";
import { discountedReturns } from "../../../returns.ts";
import { compact, rewardedRow, spread } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import type { Row } from "../row.ts";

export const rollDistillationRows: readonly Row[] = [
  {
    family: "roll/advantage",
    functions: ["agentic_compute_advantage (on-policy distillation)"],
    hone: "distillation",
    answer: (question) => {
      const mask = question.matrix("response_mask");
      const useRewards = question.golden.name.includes("/mixed/");
      const returns = question
        .matrix("token_level_rewards")
        .map((row) => discountedReturns(row, question.number("gamma")));
      const advantages = mask.map((bits, row) => {
        const taught = taughtTokens(question, row);
        const { rollout } = rewardedRow(row, bits, { reward: 0 });
        const earned = useRewards && { tokenAdvantages: Float64Array.from(compact(returns[row]!, bits)) };
        const { tokenAdvantages } = addToTokens({ rollout, advantage: 0, ...earned }, taught);
        return spread([...tokenAdvantages!], bits);
      });
      return [
        { field: "advantages", actual: advantages },
        { field: "returns", actual: useRewards ? returns : advantages },
      ];
    },
  },
];

/** [N] what the teachers of a row add to its sampled tokens. */
function taughtTokens(question: Question, row: number): Float64Array {
  const bits = question.matrix("response_mask")[row]!;
  const coefficients = question.golden.parameters.coefficients as Readonly<Record<string, number>>;
  const rowsOfTeacher = question.golden.parameters.rows_of_teacher as Readonly<Record<string, string>>;
  const places = question.golden.inputs.teachers as readonly string[];
  const teachers = Object.entries(coefficients).flatMap(([name, coefficient], teacher) => {
    const rows = rowsOfTeacher[name];
    if (rows !== "all" && rows !== (row % 2 === 0 ? "even" : "odd")) return [];
    const [set, key] = places[teacher]!.split(".");
    return [{ coefficient, logprobs: compact(question.ofOtherSet<Matrix>(set!, key!)[row]!, bits) }];
  });
  const { kind } = distillationSchema.parse({ teachers: [{}] });
  return distillationAdvantages(compact(question.matrix("log_probs")[row]!, bits), teachers, kind);
}
