/** The golden cases of entropies, for the test of an engine's head. */

import { compact } from "../dense.ts";
import { familyOf, golden, type Matrix, Question } from "../golden.ts";
import { verlWeights } from "../rows/aggregation.ts";

export const ENTROPY_FAMILY = "verl/entropy-loss";

/** N trained tokens, row by row. */
export interface EntropyCase {
  readonly name: string;
  /** [N][vocabulary] */
  readonly logits: Matrix;
  /** [N] the aggregation's weight of each token. */
  readonly weights: readonly number[];
  /** [N] */
  readonly entropies: readonly number[];
  /** Their sum by the weights. */
  readonly total: number;
}

export const ENTROPY_CASES: readonly EntropyCase[] = golden.cases
  .filter((each) => familyOf(each) === ENTROPY_FAMILY)
  .map((each) => {
    const question = new Question(each);
    const mask = question.matrix("response_mask");
    const weights = verlWeights(mask, question.text("loss_agg_mode"), {
      norm: undefined,
      parts: undefined,
      allTokens: undefined,
      allRows: undefined,
    });
    const tokens = (values: Matrix) => values.flatMap((row, i) => compact(row, mask[i]!));
    const logits = each.inputs.logits as readonly Matrix[];
    return {
      name: each.name,
      logits: logits.flatMap((row, i) => row.filter((_, t) => mask[i]![t] === 1)),
      weights: tokens(weights),
      entropies: tokens(question.expected("entropy")),
      total: question.expected<number>("loss"),
    };
  });
