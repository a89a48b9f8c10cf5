/** Rollout correction against verl's weights, rejections and figures. */

import { type CorrectionConfig, correctionSchema, correctTokens } from "../../../correction/correction.ts";
import { compareTokens } from "../../../correction/tokens.ts";
import { compact, denseOf, rowSums } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { mean, std } from "../naive.ts";
import type { Check, Row } from "../row.ts";

const QUIRKS = {
  Q6: "the bounds of k1 are on k1 itself, the log of behaviour / old as verl applies them; bounds of old / behaviour are those of the measure ratio",
  Q7: "a sample in which nothing was sampled counts in no figure",
};

/** Figures of verl that Hone does not have. */
const LEFT_OUT: readonly RegExp[] = [
  // The deviation of numbers that are first brought within the bounds says little beside the shares outside of them.
  /^rollout_rs_\w+_k[123]_std$/,
  // k2 and k3 have no lower bound in verl, and the share is always 0.
  /^rollout_rs_\w+_k[23]_fraction_low$/,
];

export const verlCorrectionRows: readonly Row[] = [
  {
    family: "verl/rollout-correction",
    functions: ["compute_rollout_correction_weights"],
    hone: "correction.weight",
    quirks: QUIRKS,
    answer: (question) => withAllMetrics(question, answerWeights(question)),
  },
  {
    family: "verl/rollout-correction",
    functions: ["compute_rollout_rejection_mask"],
    hone: "correction.reject",
    quirks: QUIRKS,
    answer: (question) => withAllMetrics(question, answerRejection(question)),
  },
  {
    family: "verl/rollout-correction",
    functions: ["compute_offpolicy_metrics"],
    hone: "mismatchFigures",
    quirks: QUIRKS,
    answer: (question) =>
      withAllMetrics(question, mismatchChecks(question, correct(question, {}).metrics, "")),
  },
  {
    family: "verl/rollout-correction",
    functions: ["compute_rollout_correction_and_rejection_mask"],
    hone: "correction",
    quirks: QUIRKS,
    answer: (question) => withAllMetrics(question, answerBoth(question)),
  },
];

type Metrics = Readonly<Record<string, number>>;
interface Corrected {
  readonly weights: readonly number[];
  readonly kept: readonly number[];
  readonly metrics: Metrics;
}

/** Hone's answer with the keys of a run file. */
function correct(
  question: Question,
  keys: object,
  { old, behaviour } = { old: "old_log_prob", behaviour: "rollout_log_prob" },
): Corrected {
  const mask = question.matrix("response_mask");
  const sampled = (name: string) => question.matrix(name).flatMap((row, i) => compact(row, mask[i]!));
  const samples = mask.map((row) => ({ lossMask: [0, ...row] }));
  const tokens = compareTokens(samples, sampled(old), sampled(behaviour));
  const config: CorrectionConfig = correctionSchema.parse(keys);
  const { weights, kept, metrics } = correctTokens(tokens, config);
  return { weights: [...weights], kept: [...kept], metrics };
}

/**
 * What Hone's correction gives at the first update of a step, when the training engine's log-probabilities are those of the
 * update: rows by positions, 0 where nothing was sampled. The cases of the bypass mode compute them anew at each update.
 */
export function bypassCorrection(question: Question) {
  const mask = question.matrix("response_mask");
  const keys = { ...weightKeys(question), ...rejectionKeys(question) };
  const { weights, kept } = correct(question, keys, { old: "log_prob", behaviour: "old_log_prob" });
  return { weights: denseOf(mask, weights), kept: denseOf(mask, kept) };
}

function answerWeights(question: Question): Check[] {
  const keys = weightKeys(question);
  const { weights, metrics } = correct(question, keys);
  return [
    { field: "weights", actual: denseOf(question.matrix("response_mask"), weights) },
    ...weightChecks(question, metrics, ""),
  ];
}

function answerRejection(question: Question): Check[] {
  const keys = rejectionKeys(question);
  const { kept, metrics } = correct(question, keys);
  return [
    { field: "mask", actual: denseOf(question.matrix("response_mask"), kept) },
    ...rejectionChecks(question, metrics, ""),
  ];
}

function answerBoth(question: Question): Check[] {
  const keys = { ...weightKeys(question), ...rejectionKeys(question) };
  const { weights, kept, metrics } = correct(question, keys);
  const mask = question.matrix("response_mask");
  // Without weights, verl returns none, and each token of Hone weighs 1.
  const isWeighed = question.golden.expected.weights !== null;
  return [
    { field: "weights", actual: denseOf(mask, weights), ...(!isWeighed && { expected: mask }) },
    { field: "mask", actual: denseOf(mask, kept) },
    ...(isWeighed ? weightChecks(question, metrics, "rollout_corr/") : []),
    ...rejectionChecks(question, metrics, "rollout_corr/"),
    ...mismatchChecks(question, metrics, "rollout_corr/"),
  ];
}

/** verl's one number is the upper bound, and its `lower_upper` the window outside of which weights are 0. */
function weightKeys({ golden: { parameters } }: Question): object {
  const level = { token: "token", sequence: "sequence_sum" }[String(parameters.rollout_is)];
  if (level === undefined) return {};
  const [first, second] = String(parameters.rollout_is_threshold).split("_").map(Number);
  const bounds = second === undefined ? { upper: first } : { lower: first, upper: second, outside: "zero" };
  return { weight: { level, ...bounds, normalize: parameters.rollout_is_batch_normalize === true } };
}

/** verl's options with their thresholds, of which one number stands for all options, and of k1 for 1/number to number. */
function rejectionsOf({ golden: { parameters } }: Question) {
  if (parameters.rollout_rs === undefined) return [];
  const options = String(parameters.rollout_rs).split(",");
  const thresholds = String(parameters.rollout_rs_threshold).split(",");
  return options.map((option, at) => {
    const [kind, measure] = [option.slice(0, -3), option.slice(-2)];
    const level = kind.replace("seq", "sequence");
    const [first, second] = (thresholds[at] ?? thresholds[0]!).split("_").map(Number);
    const bounds =
      measure === "k1"
        ? { lower: Math.log(second === undefined ? 1 / first! : first!), upper: Math.log(second ?? first!) }
        : { upper: first! };
    return { option, measure, level, ...bounds };
  });
}

function rejectionKeys(question: Question): object {
  return { reject: rejectionsOf(question).map(({ option: _, ...rejection }) => rejection) };
}

function weightChecks(question: Question, metrics: Metrics, prefix: string): Check[] {
  const isToken = question.text("rollout_is") === "token";
  const own = isToken ? "weight" : "weight/unbounded";
  const names = {
    rollout_is_mean: "weight/mean",
    rollout_is_std: "weight/std",
    rollout_is_eff_sample_size: "weight/effective/share",
    rollout_is_ratio_fraction_high: "weight/high/share",
    rollout_is_ratio_fraction_low: "weight/low/share",
    // Of samples, verl shows the extremes before the bounds, and of tokens those after.
    rollout_is_max: `${own}/max`,
    rollout_is_min: `${own}/min`,
    rollout_is_seq_mean: "weight/sample/mean",
    rollout_is_seq_std: "weight/sample/std",
    rollout_is_seq_max: "weight/sample/max",
    rollout_is_seq_min: "weight/sample/min",
    rollout_is_seq_max_deviation: "weight/sample/deviation/max",
    rollout_is_seq_fraction_high: "weight/sample/high/share",
    rollout_is_seq_fraction_low: "weight/sample/low/share",
    rollout_is_oob_ratio: "weight/cut/share",
    rollout_is_batch_norm_factor: "weight/scale",
  };
  const expected = question.expected<Metrics>("metrics");
  return checksOf(question, metrics, prefix, names, weightsOfPresentRows(question, expected, prefix));
}

/** What the figures of samples are without the rows in which nothing was sampled: weight 0 in verl's, and ratio 1 or 0. */
function weightsOfPresentRows(question: Question, expected: Metrics, prefix: string): Metrics {
  const mask = question.matrix("response_mask");
  const { rows, present } = countRows(mask);
  if (rows === present) return {};
  const scale = expected[`${prefix}rollout_is_batch_norm_factor`] ?? 1;
  const samples = question
    .expected("weights")
    .flatMap((row, i) => (rowSums(mask)[i] === 0 ? [] : [mean(compact(row, mask[i]!)) * scale]));
  const isToken = question.text("rollout_is") === "token";
  const counted = (name: string) => Math.round(expected[`${prefix}${name}`]! * rows);
  return {
    rollout_is_seq_mean: mean(samples),
    rollout_is_seq_std: std(samples),
    rollout_is_seq_max: Math.max(...samples),
    rollout_is_seq_min: Math.min(...samples),
    rollout_is_seq_max_deviation: Math.max(...samples.map((weight) => Math.abs(weight - 1))),
    rollout_is_seq_fraction_high: counted("rollout_is_seq_fraction_high") / present,
    // An empty row has the weight 0, which is low.
    rollout_is_seq_fraction_low: (counted("rollout_is_seq_fraction_low") - (rows - present)) / present,
    ...(!isToken && {
      // Here it has the ratio 1, which is neither.
      rollout_is_ratio_fraction_high: counted("rollout_is_ratio_fraction_high") / present,
      rollout_is_ratio_fraction_low: counted("rollout_is_ratio_fraction_low") / present,
    }),
  };
}

function rejectionChecks(question: Question, metrics: Metrics, prefix: string): Check[] {
  const rejections = rejectionsOf(question);
  if (rejections.length === 0) return [];
  const names = rejections.map(({ option, measure, level }) => {
    const [verl, hone] = [`rollout_rs_${option}`, `${measure}_${level}`];
    return {
      [`${verl}_mean`]: `${hone}/mean`,
      [`${verl}_max`]: `${hone}/max`,
      [`${verl}_min`]: `${hone}/min`,
      [`${verl}_fraction_high`]: `${hone}/high/share`,
      ...(measure === "k1" && { [`${verl}_fraction_low`]: `${hone}/low/share` }),
      [`${verl}_seq_mean`]: `${hone}/sample/mean`,
      [`${verl}_seq_std`]: `${hone}/sample/std`,
      [`${verl}_seq_max`]: `${hone}/sample/max`,
      [`${verl}_seq_min`]: `${hone}/sample/min`,
      [`${verl}_seq_max_deviation`]: `${hone}/sample/deviation/max`,
      [`${verl}_seq_fraction_high`]: `${hone}/sample/high/share`,
      [`${verl}_seq_fraction_low`]: `${hone}/sample/low/share`,
      [`${verl}_masked_fraction`]: `rejected/${hone}/share`,
      [`${verl}_seq_masked_fraction`]: `rejected/${hone}/sample/share`,
    };
  });
  const { rows, present } = countRows(question.matrix("response_mask"));
  const share = question.expected<Metrics>("metrics")[`${prefix}rollout_rs_seq_masked_fraction`]!;
  return checksOf(
    question,
    metrics,
    prefix,
    Object.assign({}, ...names, {
      rollout_rs_masked_fraction: "rejected/share",
      rollout_rs_seq_masked_fraction: "rejected/sample/share",
    }),
    rows === present ? {} : { rollout_rs_seq_masked_fraction: (share * rows) / present },
  );
}

function mismatchChecks(question: Question, metrics: Metrics, prefix: string): Check[] {
  const names = {
    kl: "kl/k1",
    k3_kl: "kl/k3",
    training_ppl: "perplexity/old",
    training_log_ppl: "log_perplexity/old",
    rollout_ppl: "perplexity/behaviour",
    rollout_log_ppl: "log_perplexity/behaviour",
    log_ppl_diff: "log_perplexity_gap/mean",
    log_ppl_abs_diff: "log_perplexity_gap/absolute/mean",
    log_ppl_diff_max: "log_perplexity_gap/max",
    log_ppl_diff_min: "log_perplexity_gap/min",
    ppl_ratio: "perplexity_ratio/mean",
    chi2_token: "chi_square/token",
    chi2_seq: "chi_square/sequence",
  };
  const { rows, present } = countRows(question.matrix("response_mask"));
  if (rows === present) return checksOf(question, metrics, prefix, names, {});
  // In verl's means an empty row has the perplexity 1, and of logarithms and of chi-square 0.
  const neutral = { training_ppl: 1, rollout_ppl: 1, ppl_ratio: 1 };
  const ofRows = [
    ...["training_ppl", "rollout_ppl", "ppl_ratio", "training_log_ppl", "rollout_log_ppl"],
    ...["log_ppl_diff", "log_ppl_abs_diff", "chi2_seq"],
  ];
  const expected = question.expected<Metrics>("metrics");
  const without = ofRows.map((name) => {
    const ofEmpty = (neutral as Metrics)[name] ?? 0;
    return [name, (expected[`${prefix}${name}`]! * rows - ofEmpty * (rows - present)) / present];
  });
  return checksOf(question, metrics, prefix, names, Object.fromEntries(without));
}

/** Fails where the case has a figure that is neither compared nor left out by name. */
function withAllMetrics(question: Question, checks: readonly Check[]): readonly Check[] {
  const compared = checks.filter(({ field }) => field === "metrics").length;
  const due = Object.keys(question.expected<Metrics>("metrics")).filter(
    (name) => !LEFT_OUT.some((pattern) => pattern.test(name.replace("rollout_corr/", ""))),
  );
  return [...checks, { field: "number of figures compared", actual: compared, expected: due.length }];
}

/** Compares each figure that the case has. @param without what is expected because of Q7. */
function checksOf(
  question: Question,
  metrics: Metrics,
  prefix: string,
  names: Readonly<Record<string, string>>,
  without: Metrics,
): Check[] {
  const expected = question.expected<Metrics>("metrics");
  return Object.entries(names).flatMap(([verl, hone]): Check[] => {
    const value = expected[`${prefix}${verl}`];
    if (value === undefined) return [];
    return [
      {
        field: "metrics",
        actual: metrics[hone] ?? Number.NaN,
        expected: without[verl] ?? value,
        ...(without[verl] !== undefined && { quirk: "Q7" }),
        isMetric: true,
      },
    ];
  });
}

function countRows(mask: Matrix): { rows: number; present: number } {
  return { rows: mask.length, present: rowSums(mask).filter((count) => count > 0).length };
}
