/** verl's losses of the policy. */

import { MAX_LOG_RATIO } from "../../../loss/token-numbers.ts";
import { compact, rowSums } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { verlWeights } from "../rows/aggregation.ts";
import { bypassCorrection } from "../rows/verl-correction.ts";
import { type Differing, type LossOptions, type LossRow, LossSetting, lossChecks } from "./loss-row.ts";
import { byCovariance, naiveLoss, type Point, surrogate } from "./naive-losses.ts";

/** Options by verl's name of the loss. */
const OPTIONS: Readonly<Record<string, (question: Question) => LossOptions>> = {
  vanilla: (question) => ({
    kind: "ppo_clip",
    ...clips(question),
    dualClip: question.number("clip_ratio_c"),
  }),
  gspo: (question) => ({ kind: "gspo", ...clips(question) }),
  geo_mean: (question) => ({ kind: "gmpo", ...clips(question) }),
  sapo: (question) => ({
    kind: "sapo",
    tauPositive: question.number("tau_pos"),
    tauNegative: question.number("tau_neg"),
  }),
  gpg: () => ({ kind: "gpg" }),
  cispo: (question) => ({ kind: "cispo", ...clips(question) }),
  dppo_tv: (question) => ({ kind: "dppo_tv", ...thresholds(question) }),
  dppo_kl: (question) => ({ kind: "dppo_kl", ...thresholds(question) }),
  dro: (question) => ({ kind: "dro", beta: question.number("dro_beta") }),
  clip_cov: (question) => ({
    kind: "clip_cov",
    ...clips(question),
    share: question.number("clip_cov_ratio"),
    covarianceLow: question.number("clip_cov_lb"),
    covarianceHigh: question.number("clip_cov_ub"),
  }),
  kl_cov: (question) => ({
    kind: "kl_cov",
    share: question.number("kl_cov_ratio"),
    coefficient: question.number("ppo_kl_coef"),
  }),
};

/** Losses whose share of clipped tokens verl counts as Hone does. */
const COUNTS_CLIPPED = ["vanilla", "gspo", "cispo", "dppo_tv", "dppo_kl"];

const leaves = {
  metrics: "figures of verl; the share of clipped tokens is compared where Hone counts it alike",
};

export const verlLossRows: readonly LossRow[] = [
  ...Object.entries(OPTIONS).map(
    ([name, optionsOf]): LossRow => ({
      family: "verl/policy-loss",
      functions: [`policy loss ${name}`],
      hone: `loss.kind: ${optionsOf({ number: () => 1 } as unknown as Question).kind}`,
      quirks: {
        Q4: "the aggregation is the run file's, by default the one that verl uses; a rollout without a token does not count",
      },
      leaves,
      ask: (question) => ask(question, name, optionsOf(question)),
    }),
  ),
  ...["ppo_clip", "reinforce"].map(
    (name): LossRow => ({
      family: "verl/policy-loss",
      functions: ["policy loss bypass_mode"],
      named: `/${name}/`,
      hone: `loss.kind: ${name} with correction.old: rollout`,
      quirks: {
        Q6: "the bounds of k1 are on k1 itself, as verl applies them",
        Q7: "figures of rows without a token are verl's own",
      },
      leaves,
      ask: (question) =>
        ask(question, "bypass_mode", name === "reinforce" ? { kind: name } : OPTIONS.vanilla!(question)),
    }),
  ),
];

function ask(question: Question, name: string, options: LossOptions) {
  const mask = question.matrix("response_mask");
  const setting = new LossSetting(options, {
    mask,
    logprob: question.matrix("log_prob"),
    behaviour: question.matrix("old_log_prob"),
    advantage: question.matrix("advantages"),
  });
  const weights = weightsOf(question, name);
  return {
    task: setting.task(weights),
    check: (answer: Parameters<typeof lossChecks>[1]) => [
      ...lossChecks(mask, answer, { differing: differingOf(question, name, setting, weights) }),
      ...(COUNTS_CLIPPED.includes(name)
        ? [
            {
              field: "share of clipped tokens",
              actual: setting.clipFraction(),
              expected: question.expected<Record<string, number>>("metrics")["actor/pg_clipfrac"]!,
              isMetric: true,
            },
          ]
        : []),
    ],
  };
}

function clips(question: Question) {
  return { clipLow: question.number("clip_ratio_low"), clipHigh: question.number("clip_ratio_high") };
}

function thresholds(question: Question) {
  return {
    thresholdLow: question.number("clip_ratio_low"),
    thresholdHigh: question.number("clip_ratio_high"),
    maxRatio: question.number("clip_ratio_c"),
  };
}

/** Rows by positions: the aggregation's weights times the weights of importance sampling, where the case has some. */
function weightsOf(question: Question, name: string): number[][] {
  const correction = name === "bypass_mode" ? bypassCorrection(question) : undefined;
  const mask = correction?.kept ?? question.matrix("response_mask");
  const global = question.golden.parameters.global as Record<string, number> | undefined;
  const mode = name === "geo_mean" ? "seq-mean-token-mean" : question.text("loss_agg_mode");
  const weights = verlWeights(mask, mode, {
    norm: global?.loss_scale_factor,
    parts: global?.dp_size,
    allTokens: global?.batch_num_tokens,
    allRows: global?.global_batch_size,
  });
  if (correction !== undefined && question.text("loss_type") === "reinforce") {
    return weights.map((row, i) => row.map((weight, t) => weight * correction.weights[i]![t]!));
  }
  // The other loss of the bypass mode has the weight as its ratio.
  if (!question.has("rollout_is_weights")) return weights;
  const importance = question.matrix("rollout_is_weights");
  return weights.map((row, i) => {
    const ofRow = name === "geo_mean" ? geometricMean(compact(importance[i]!, mask[i]!)) : undefined;
    return row.map((weight, t) => weight * (ofRow ?? importance[i]![t]!));
  });
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value + 1e-10), 0) / values.length);
}

/** What Hone answers otherwise than verl. */
function differingOf(
  question: Question,
  name: string,
  { arrays: { mask, logprob, behaviour, advantage } }: LossSetting,
  weights: Matrix,
): Differing | undefined {
  const rows = rowSums(mask).filter((count) => count > 0).length;
  if (name === "geo_mean" && rows < mask.length) {
    const factor = mask.length / rows;
    const gradient = question.expected("gradient").map((row) => row.map((value) => value * factor));
    return { quirk: "Q4", gradient, loss: question.expected<number>("loss") * factor };
  }
  const isExtreme = logprob.some((row, i) =>
    row.some((value, t) => mask[i]![t] === 1 && Math.abs(value - behaviour[i]![t]!) > MAX_LOG_RATIO),
  );
  if (!isExtreme || (name !== "clip_cov" && name !== "kl_cov")) return undefined;
  const order = byCovariance(mask, logprob, advantage);
  const isChosen = chosenBy(question, name, order, (row, position) =>
    clippedSurrogate(
      question,
      logprob[row]![position]!,
      behaviour[row]![position]!,
      advantage[row]![position]!,
    ),
  );
  const point = (row: number, position: number): Point => {
    const [now, then, worth] = [logprob, behaviour, advantage].map((values) => values[row]![position]!);
    if (name === "clip_cov") {
      return isChosen(row, position) ? [0, 0] : clippedSurrogate(question, now!, then!, worth!);
    }
    const [value, slope] = surrogate(now!, then!, worth!);
    if (!isChosen(row, position)) return [value, slope];
    const distance = Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, now! - then!));
    const coefficient = question.number("ppo_kl_coef");
    const inside = Math.abs(now! - then!) <= MAX_LOG_RATIO ? Math.sign(distance) : 0;
    return [value + coefficient * Math.abs(distance), slope + coefficient * inside];
  };
  return {
    quirk: "a log ratio beyond 20 is bounded, as verl does in its other losses",
    ...naiveLoss(weights, point),
  };
}

function clippedSurrogate(question: Question, logprob: number, behaviour: number, advantage: number): Point {
  const { clipLow, clipHigh } = clips(question);
  return surrogate(logprob, behaviour, advantage, clipLow, clipHigh);
}

function chosenBy(
  question: Question,
  name: string,
  order: ReturnType<typeof byCovariance>,
  clippedAt: (row: number, position: number) => Point,
): (row: number, position: number) => boolean {
  const chosen =
    name === "kl_cov"
      ? order.slice(0, Math.max(1, Math.floor(order.length * question.number("kl_cov_ratio"))))
      : order.filter(
          ({ row, position, covariance }) =>
            covariance > question.number("clip_cov_lb") &&
            covariance < question.number("clip_cov_ub") &&
            clippedAt(row, position)[1] !== 0,
        );
  return (row, position) => chosen.some((each) => each.row === row && each.position === position);
}
