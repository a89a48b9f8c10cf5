/** Rollout correction against ROLL's weights, filters and figures ("train-infer correction"). */

import { correctionSchema, correctTokens } from "../../../correction/correction.ts";
import { compareTokens } from "../../../correction/tokens.ts";
import { compact, denseOf, masked, segmentsOf } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { mean } from "../naive.ts";
import type { Check, Row } from "../row.ts";

const LEVELS: Readonly<Record<string, string>> = {
  token: "token",
  segment: "segment_mean",
  geometric: "sequence_mean",
  sequence: "sequence_sum",
};

type Measure = "ratio" | "difference";

interface WeightParameters {
  readonly enabled: boolean;
  readonly weight_type: string;
  readonly upper_bound: number | null;
}

interface Filter {
  readonly ratio_enabled: boolean;
  readonly ratio_low: number;
  readonly ratio_high: number;
  readonly diff_enabled: boolean;
  readonly diff_low: number;
  readonly diff_high: number;
  readonly agg_type: string;
}

/** ROLL's `train_infer_correction`. */
export interface CorrectionParameters {
  readonly is_weight: WeightParameters;
  readonly filters: readonly Filter[];
}

export const rollCorrectionRows: readonly Row[] = [
  {
    family: "roll/train-infer-correction",
    hone: "correction",
    quirks: {
      Q8: "what filters and bounds hold back is a share of the sampled tokens, where ROLL counts all positions",
    },
    answer: answerCorrection,
  },
];

function answerCorrection(question: Question): Check[] {
  const mask = question.matrix("response_mask");
  const parameters = question.golden.parameters as unknown as CorrectionParameters;
  const { weights, kept, metrics } = rollCorrection(parameters, {
    mask,
    old: question.matrix("old_log_probs"),
    behaviour: question.matrix("infer_log_probs"),
  });
  return [
    // ROLL's tensors have weights and filters of what was not sampled too.
    { field: "weight", actual: weights, expected: masked(question.expected("weight"), mask) },
    { field: "filter_mask", actual: kept, expected: masked(question.expected("filter_mask"), mask) },
    ...metricChecks(question, metrics),
  ];
}

/** What Hone's correction gives for ROLL's parameters: rows by positions, 0 where nothing was sampled. */
export function rollCorrection(
  parameters: CorrectionParameters,
  { mask, old, behaviour }: { readonly mask: Matrix; readonly old: Matrix; readonly behaviour: Matrix },
) {
  const sampled = (values: Matrix) => values.flatMap((row, i) => compact(row, mask[i]!));
  const samples = mask.map((row) => ({ lossMask: [0, ...row] }));
  const tokens = compareTokens(samples, sampled(old), sampled(behaviour));
  const { weights, kept, metrics } = correctTokens(tokens, correctionSchema.parse(keysOf(parameters)));
  return { weights: denseOf(mask, [...weights]), kept: denseOf(mask, [...kept]), metrics };
}

function keysOf({ is_weight: weight, filters }: CorrectionParameters): object {
  return {
    ...(weight.enabled && { weight: { level: LEVELS[weight.weight_type], upper: weight.upper_bound } }),
    reject: filters.flatMap(({ agg_type, ...filter }) => {
      const level = LEVELS[agg_type]!;
      return [
        ...(filter.ratio_enabled
          ? [{ measure: "ratio", level, lower: filter.ratio_low, upper: filter.ratio_high }]
          : []),
        ...(filter.diff_enabled
          ? [{ measure: "difference", level, lower: filter.diff_low, upper: filter.diff_high }]
          : []),
      ];
    }),
  };
}

function metricChecks(question: Question, metrics: Readonly<Record<string, number>>): Check[] {
  const expected = question.expected<Readonly<Record<string, number>>>("metrics");
  return Object.entries(expected).flatMap(([name, value]): Check | Check[] => {
    const found = /^actor\/train_infer_(ratio|diff)_(\w+)_mean@sum$/.exec(name);
    if (found !== null) {
      const measure = found[1] === "diff" ? "difference" : "ratio";
      return metric(metrics[`${measure}/${LEVELS[found[2]!]}/mean`], value);
    }
    const filter = /^actor\/train_infer_(\w+)_(ratio|diff)_mask_mean@sum$/.exec(name);
    if (filter !== null) {
      const measure = filter[2] === "diff" ? "difference" : "ratio";
      const { ofAll, ofSampled } = keptShares(question, filter[1]!, measure);
      const rejected = metrics[`rejected/${measure}_${LEVELS[filter[1]!]}/share`]!;
      return [metric(ofAll, value), { ...metric(1 - rejected, ofSampled), quirk: "Q8" }];
    }
    if (name === "actor/is_weight_clipfrac@sum") {
      const { weight_type, upper_bound } = question.golden.parameters.is_weight as WeightParameters;
      const { ofAll, ofSampled } = shares(question, weight_type, "ratio", (ratio) => ratio > upper_bound!);
      return [metric(ofAll, value), { ...metric(metrics["weight/cut/share"], ofSampled), quirk: "Q8" }];
    }
    if (name === "actor/train_infer_final_mask_mean") return metric(1 - metrics["rejected/share"]!, value);
    return metric(undefined, value);
  });
}

function metric(actual: number | undefined, expected: number): Check {
  return { field: "metrics", actual: actual ?? Number.NaN, expected, isMetric: true };
}

/** What a filter keeps. */
function keptShares(question: Question, level: string, measure: Measure) {
  const filters = question.golden.parameters.filters as readonly Filter[];
  const filter = filters.find(({ agg_type }) => agg_type === level)!;
  const [low, high] =
    measure === "difference" ? [filter.diff_low, filter.diff_high] : [filter.ratio_low, filter.ratio_high];
  return shares(question, level, measure, (value) => value >= low && value <= high);
}

/**
 * For how many positions something holds, by the number of sampled tokens: of all positions, as ROLL counts them, and of those
 * that were sampled. One that was not has its own numbers, those of no segment (ratio 1, difference 0), or those of its row.
 */
function shares(
  question: Question,
  level: string,
  measure: Measure,
  holds: (value: number) => boolean,
): { ofAll: number; ofSampled: number } {
  const mask = question.matrix("response_mask");
  const behaviour = question.matrix("infer_log_probs");
  const isDifference = measure === "difference";
  let tokens = 0;
  let all = 0;
  let sampled = 0;
  question.matrix("old_log_probs").forEach((row, i) => {
    const numbers = row.map((old, t) =>
      isDifference ? Math.exp(old) - Math.exp(behaviour[i]![t]!) : old - behaviour[i]![t]!,
    );
    mask[i]!.forEach((bit, t) => {
      const value = atLevel(level, numbers, mask[i]!, t);
      const count = holds(isDifference ? value : Math.exp(value)) ? 1 : 0;
      tokens += bit;
      all += count;
      sampled += count * bit;
    });
  });
  return { ofAll: all / tokens, ofSampled: sampled / tokens };
}

function atLevel(level: string, numbers: readonly number[], mask: readonly number[], t: number): number {
  if (level === "token") return numbers[t]!;
  if (level === "segment") {
    const segment = segmentsOf(mask).find(([begin, end]) => t >= begin && t < end);
    return segment === undefined ? 0 : mean(numbers.slice(...segment));
  }
  const present = compact(numbers, mask);
  if (present.length === 0) return 0;
  return level === "geometric" ? mean(present) : mean(present) * present.length;
}
