/** How token losses become one number: Hone's weights of tokens are the gradient of the references' sums. */

import { groupMeans, groupsOf } from "../../../../packing/groups.ts";
import { Aggregation, lossWeights } from "../../../loss/aggregation.ts";
import { compact, denseOf, rowSums } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import type { Check, Row } from "../row.ts";

const MODES: Readonly<Record<string, Aggregation>> = {
  "token-mean": Aggregation.tokenMean,
  "token-sum": Aggregation.tokenSum,
  "seq-mean-token-sum": Aggregation.seqMeanTokenSum,
  "seq-mean-token-mean": Aggregation.seqMeanTokenMean,
  "seq-mean-token-sum-norm": Aggregation.seqMeanTokenSumNorm,
};

export const aggregationRows: readonly Row[] = [
  {
    family: "verl/aggregate",
    hone: "loss.aggregate",
    answer: (question) => {
      const weights = verlWeights(question.matrix("loss_mask"), question.text("loss_agg_mode"), {
        norm: question.optionalNumber("loss_scale_factor"),
        parts: question.optionalNumber("dp_size"),
        allTokens: question.optionalNumber("batch_num_tokens"),
        allRows: question.optionalNumber("global_batch_size"),
      });
      return lossChecks(question, weights);
    },
  },
  {
    family: "roll/aggregate",
    hone: "loss.aggregate",
    quirks: {
      Q8: "tokens that were not sampled have no weight",
      Q9: "seq_mean_token_sum_norm divides by the rollouts as well as by the constant",
    },
    answer: answerRoll,
  },
  {
    family: "roll/segment-mean",
    hone: "loss.ratio: segment",
    answer: (question) => {
      const mask = question.matrix("mask");
      const values = question.matrix("tensor").flatMap((row, i) => compact(row, mask[i]!));
      const groups = groupsOf(
        mask.map((lossMask) => ({ lossMask })),
        "segment",
      );
      return [{ field: "mean", actual: denseOf(mask, [...groupMeans(values, groups)]) }];
    },
  },
];

function answerRoll(question: Question): Check[] {
  const mask = question.matrix("loss_mask");
  const losses = question.matrix("loss_mat");
  const mode = question.text("loss_agg_mode");
  const counts = rowSums(mask);
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  const rows = counts.filter((count) => count > 0).length;
  const allTokens = question.optionalNumber("batch_num_tokens") ?? tokens;
  const allRows = question.optionalNumber("global_valid_samples") ?? mask.length;
  const ofRollouts = question.has("weights") ? question.vector("weights") : mask.map(() => 1);
  // Rows without a sampled token are no rollouts here, where ROLL counts them.
  const factor = mode === "token-mean" ? tokens / allTokens : rows / allRows;
  const weights = weightsOf(mask, MODES[mode]!, mask[0]!.length, factor).map((row, i) =>
    row.map((weight) => weight * ofRollouts[i]!),
  );
  if (mode === "token-mean") {
    const expected = mask.map((row, i) => row.map((bit) => (bit * ofRollouts[i]!) / allTokens));
    return lossChecks(question, weights, { gradient: expected, quirk: "Q8" });
  }
  if (mode !== "seq-mean-token-sum-norm") return lossChecks(question, weights);
  const expected = question.expected("gradient").map((row) => row.map((value) => value / allRows));
  const sums = losses.map((row, i) =>
    compact(row, mask[i]!).reduce((sum, loss) => sum + loss * ofRollouts[i]!, 0),
  );
  const loss = sums.reduce((sum, each) => sum + each, 0) / (allRows * mask[0]!.length);
  return lossChecks(question, weights, { gradient: expected, loss, quirk: "Q9" });
}

/** What verl may be told of the whole that a batch is a part of. */
interface VerlCounts {
  readonly norm: number | undefined;
  readonly parts: number | undefined;
  readonly allTokens: number | undefined;
  readonly allRows: number | undefined;
}

/** [rows by positions] Hone's weight of each token, for verl's name of an aggregation. */
export function verlWeights(mask: Matrix, mode: string, { norm, parts, allTokens, allRows }: VerlCounts) {
  const tokens = rowSums(mask).reduce((sum, count) => sum + count, 0);
  const rows = rowSums(mask).filter((count) => count > 0).length;
  // A minibatch of Hone is one sum; verl divides its parts by the whole's tokens and rows, and adds them up.
  const factor =
    { "token-mean": tokens / (allTokens ?? tokens), "token-sum": 1 }[mode] ?? rows / (allRows ?? rows);
  return weightsOf(mask, MODES[mode]!, norm ?? mask[0]!.length, (parts ?? 1) * factor);
}

/** The same for ROLL's name of one, over all rows that have a token. */
export function rollWeights(mask: Matrix, mode: string): number[][] {
  return weightsOf(mask, MODES[mode]!, mask[0]!.length, 1);
}

/** [rows by positions] the weight of each token. */
function weightsOf(mask: Matrix, aggregation: Aggregation, norm: number, factor: number): number[][] {
  const counts = rowSums(mask);
  const present = counts.flatMap((count, row) => (count > 0 ? [row] : []));
  const weights = lossWeights(
    present.map((row) => counts[row]!),
    aggregation,
    norm,
  );
  return mask.map((row, i) => {
    const weight = weights[present.indexOf(i)] ?? 0;
    return row.map((bit) => bit * weight * factor);
  });
}

function lossChecks(
  question: Question,
  weights: number[][],
  differing?: { readonly gradient: number[][]; readonly loss?: number; readonly quirk: string },
): Check[] {
  const losses = question.matrix("loss_mat");
  const sumOf = (gradient: Matrix) =>
    gradient
      .flatMap((row, i) => row.map((weight, t) => weight * losses[i]![t]!))
      .reduce((sum, each) => sum + each, 0);
  const quirk = differing && { quirk: differing.quirk };
  return [
    { field: "gradient", actual: weights, ...(differing && { expected: differing.gradient }), ...quirk },
    {
      field: "loss",
      actual: sumOf(weights),
      ...(differing && { expected: differing.loss ?? sumOf(differing.gradient) }),
      ...quirk,
    },
  ];
}
