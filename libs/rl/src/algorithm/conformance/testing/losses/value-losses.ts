/** The losses of a critic, of verl and of ROLL. */

import { isValueClipped, valueLossSchema, valueTerm } from "../../../loss/value.ts";
import { compact, rowSums } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { rollWeights, verlWeights } from "../rows/aggregation.ts";
import { type AskedLoss, type LossAnswer, type LossRow, lossChecks } from "./loss-row.ts";

const hone = "trainer.critic.loss";

export const valueLossRows: readonly LossRow[] = [
  {
    family: "verl/value-loss",
    hone,
    ask: (question) => {
      const weights = verlWeights(question.matrix("response_mask"), question.text("loss_agg_mode"), {
        norm: undefined,
        parts: undefined,
        allTokens: undefined,
        allRows: undefined,
      });
      const arrays = arraysOf(question, "vpreds", "values");
      const clip = question.number("cliprange_value");
      return {
        task: taskOf(arrays, clip, weights),
        check: (answer) => [
          ...lossChecks(arrays.mask, answer),
          {
            field: "clip_fraction",
            actual: clippedShare(arrays, clip),
            isMetric: true,
          },
        ],
      };
    },
  },
  {
    family: "roll/value-loss",
    hone,
    quirks: {
      Q8: "a rollout without a token does not count",
      Q16: "without a clip nothing counts as clipped",
    },
    leaves: { metrics: "figures of ROLL" },
    ask: (question) => {
      const arrays = arraysOf(question, "values", "old_values");
      const weights = rollWeights(arrays.mask, "seq-mean-token-mean");
      return {
        task: taskOf(arrays, question.optionalNumber("value_clip") ?? null, weights),
        check: (answer) => rollChecks(question, arrays.mask, answer),
      };
    },
  },
];

interface ValueArrays {
  readonly mask: Matrix;
  readonly values: Matrix;
  readonly oldValues: Matrix;
  readonly returns: Matrix;
}

function arraysOf(question: Question, values: string, oldValues: string): ValueArrays {
  return {
    mask: question.matrix("response_mask"),
    values: question.matrix(values),
    oldValues: question.matrix(oldValues),
    returns: question.matrix("returns"),
  };
}

/** [E] */
function entriesOf({ mask }: Pick<ValueArrays, "mask">, numbers: Matrix): number[] {
  return numbers.flatMap((row, i) => compact(row, mask[i]!));
}

function taskOf(arrays: ValueArrays, clip: number | null, weights: Matrix): AskedLoss["task"] {
  return {
    terms: [valueTerm(valueLossSchema.parse({ clip }))],
    scores: entriesOf(arrays, arrays.values),
    inputs: { oldValue: entriesOf(arrays, arrays.oldValues), return: entriesOf(arrays, arrays.returns) },
    weights: entriesOf(arrays, weights),
  };
}

/** ROLL averages over all rows, Hone over those that have a token. */
function rollChecks(question: Question, mask: Matrix, answer: LossAnswer) {
  const present = rowSums(mask).filter((count) => count > 0).length;
  if (present === mask.length) return lossChecks(mask, answer);
  const factor = mask.length / present;
  const gradient = question.expected<number[][]>("gradient").map((row) => row.map((value) => value * factor));
  return lossChecks(mask, answer, {
    differing: { quirk: "Q8", gradient, loss: question.expected<number>("loss") * factor },
  });
}

function clippedShare(arrays: ValueArrays, clip: number): number {
  const [values, oldValues, returns] = [arrays.values, arrays.oldValues, arrays.returns].map((numbers) =>
    entriesOf(arrays, numbers),
  );
  const clipped = values!.filter((value, entry) =>
    isValueClipped({ value, oldValue: oldValues![entry]!, return: returns![entry]! }, { clip }),
  );
  return clipped.length / values!.length;
}
