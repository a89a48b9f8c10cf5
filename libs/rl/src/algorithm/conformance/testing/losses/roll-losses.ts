/** ROLL's losses of the policy. */

import type { LossTerm } from "../../../loss/loss.ts";
import type { LossName } from "../../../loss/registry.ts";
import type { Matrix, Question } from "../golden.ts";
import { rollWeights } from "../rows/aggregation.ts";
import { type CorrectionParameters, rollCorrection } from "../rows/roll-correction.ts";
import {
  type AskedLoss,
  type Differing,
  type LossOptions,
  type LossRow,
  LossSetting,
  lossChecks,
} from "./loss-row.ts";
import { naiveLoss, type Point, squaredDistance, surrogate } from "./naive-losses.ts";

/** Options by ROLL's name of the loss. */
const OPTIONS: Readonly<Record<string, (question: Question) => LossOptions>> = {
  vanilla: () => ({ kind: "reinforce" }),
  ppo: (question) => {
    const clip = question.number("pg_clip");
    return {
      kind: "ppo_clip",
      clipLow: question.optionalNumber("pg_clip_low") ?? clip,
      clipHigh: question.optionalNumber("pg_clip_high") ?? clip,
      dualClip: question.flag("dual_clip_loss") ? 1 + 2 * clip : null,
      ...ratio(question),
    };
  },
  tis: (question) => ({
    kind: "tis",
    lower: question.number("tis_lower_bound"),
    upper: question.number("tis_upper_bound"),
    ...ratio(question),
  }),
  topr: (question) => ({
    kind: "topr",
    positiveWeight: question.number("topr_positive_weight"),
    negativeWeight: question.number("topr_negative_weight"),
    ...ratio(question),
  }),
  cispo: (question) => ({
    kind: "cispo",
    clipLow: question.number("cispo_epsilon_low"),
    clipHigh: question.number("cispo_epsilon_high"),
    mask: question.flag("cispo_use_unified_mask"),
    ...ratio(question),
  }),
  // The square is of each token's log ratio under both types.
  kimi15: (question) => ({ kind: "kimi15", tau: question.number("kimi15_tau") }),
};

const quirks = {
  Q8: "tokens that were not sampled, or were rejected, have no weight, and rows without any others do not count",
  Q9: "seq_mean_token_sum_norm divides by the rollouts as well as by the constant",
  Q15: "each rollout has its own reward, however many samples its history makes",
  Q16: "names of figures are ROLL's own",
};

export const rollLossRows: readonly LossRow[] = Object.entries(OPTIONS).flatMap(([name, optionsOf]) =>
  partsOf(name).map(
    (named): LossRow => ({
      family: "roll/policy-loss",
      named,
      hone: `loss.kind: ${name === "vanilla" ? "reinforce" : name === "ppo" ? "ppo_clip" : name}`,
      quirks,
      leaves: { metrics: "figures of ROLL", raises: "ROLL fails where an episode has several rows" },
      ask: (question) => ask(question, name, optionsOf(question)),
    }),
  ),
);

/** Parts of names that take in all cases of a loss. */
function partsOf(name: string): string[] {
  if (name !== "ppo") return [`/${name}/`];
  return [
    "main/token/",
    "main/segment/",
    "edge/token/",
    "main/clip-range",
    "main/dual-clip",
    "main/kl-and-entropy/",
    "main/correction/",
  ].map((part) => `/ppo/${part}`);
}

function ask(question: Question, name: string, options: LossOptions): AskedLoss {
  // The case that fails in ROLL names only what differs from the others: the rows of several episodes.
  const isWhole = question.has("log_probs");
  const matrix = (input: string, ofSet: string) =>
    isWhole ? question.matrix(input) : question.ofOtherSet<Matrix>("main", ofSet);
  const mask = matrix("response_mask", "response_mask");
  const setting = new LossSetting(options, {
    mask,
    logprob: matrix("log_probs", "log_prob"),
    behaviour: matrix("old_log_probs", "old_log_prob"),
    advantage: matrix("advantages", "masked_advantages"),
    ...(isWhole && { reference: question.matrix("ref_log_probs") }),
    rewards: question.vector("episode_scores"),
  });
  const mode = isWhole ? question.text("loss_agg_mode") : "seq-mean-token-mean";
  const correction = isWhole ? correctionOf(question, mask) : undefined;
  const weights = correctedWeights(mask, mode, correction);
  const kl = question.flag("use_kl_loss") ? question.number("kl_loss_coef") : 0;
  const terms: LossTerm<LossName>[] = kl === 0 ? [] : [{ name: "kl_k3", constants: { coefficient: kl } }];
  const added = -(question.optionalNumber("entropy_loss_coef") ?? 0) * entropyOf(question, weights);
  return {
    task: setting.task(weights, terms),
    check: (answer) => {
      if (!isWhole) return toprChecks(setting, weights, answer);
      return lossChecks(mask, answer, {
        differing:
          correction === undefined
            ? differingOf(question, name, mode, setting, weights)
            : differingCorrected(question, mode, setting, weights, correction),
        added,
      });
    },
  };
}

type Correction = ReturnType<typeof rollCorrection>;

function correctionOf(question: Question, mask: Matrix): Correction | undefined {
  const parameters = question.golden.parameters.train_infer_correction as CorrectionParameters | undefined;
  if (parameters === undefined) return undefined;
  const [old, behaviour] = [question.matrix("old_log_probs"), question.matrix("infer_logprobs")];
  return rollCorrection(parameters, { mask, old, behaviour });
}

/** Rejected tokens count for nothing, and the others for what their weight is. */
function correctedWeights(mask: Matrix, mode: string, correction: Correction | undefined): number[][] {
  if (correction === undefined) return rollWeights(mask, mode);
  const { kept, weights } = correction;
  return rollWeights(kept, mode).map((row, i) => row.map((weight, t) => weight * weights[i]![t]!));
}

function ratio(question: Question) {
  return question.golden.parameters.ratio_type === "segment" ? { ratio: "segment" } : {};
}

/** The aggregate of the entropies, 0 where the case has no such term. */
function entropyOf(question: Question, weights: Matrix): number {
  if (question.optionalNumber("entropy_loss_coef") === undefined) return 0;
  return total(question.matrix("entropy"), weights);
}

function total(values: Matrix, weights: Matrix): number {
  return values.flat().reduce((sum, value, i) => sum + value * weights.flat()[i]!, 0);
}

function differingOf(
  question: Question,
  name: string,
  mode: string,
  { arrays: { mask, logprob, behaviour, advantage } }: LossSetting,
  weights: Matrix,
): Differing | undefined {
  if (mode === "seq-mean-token-sum-norm") {
    const rows = mask.filter((row) => row.includes(1)).length;
    const gradient = question.expected("gradient").map((row) => row.map((value) => value / rows));
    return { quirk: "Q9", gradient, loss: question.expected<number>("loss") / rows };
  }
  if (mode !== "token-mean") return undefined;
  if (name === "kimi15") {
    const tau = question.number("kimi15_tau");
    const point = (i: number, t: number) =>
      squaredDistance(logprob[i]![t]!, behaviour[i]![t]!, advantage[i]![t]!, tau);
    return { quirk: "Q8", ...naiveLoss(weights, point) };
  }
  const coefficient = question.optionalNumber("entropy_loss_coef");
  if (coefficient === undefined) return undefined;
  // ROLL sums the entropies of all positions; its metrics tell the other parts.
  const metrics = question.expected<Record<string, number>>("metrics");
  const parts =
    metrics["actor/pg_loss@sum"]! + question.number("kl_loss_coef") * metrics["actor/kl_loss@sum"]!;
  const loss = parts - coefficient * entropyOf(question, weights);
  return { quirk: "Q8", gradient: question.expected("gradient"), loss };
}

/** Where something was rejected: ROLL divides by the rows of before, and in token-mean trains on what was rejected as well. */
function differingCorrected(
  question: Question,
  mode: string,
  { arrays: { mask, logprob, behaviour, advantage } }: LossSetting,
  weights: Matrix,
  { kept }: Correction,
): Differing | undefined {
  if (mode === "token-mean") {
    const clip = question.number("pg_clip");
    const point = (i: number, t: number) =>
      surrogate(logprob[i]![t]!, behaviour[i]![t]!, advantage[i]![t]!, clip, clip);
    return { quirk: "Q8", ...naiveLoss(weights, point) };
  }
  const rowsOf = (values: Matrix) => values.filter((row) => row.includes(1)).length;
  const isNorm = mode === "seq-mean-token-sum-norm";
  const factor = isNorm ? 1 / rowsOf(kept) : rowsOf(mask) / rowsOf(kept);
  if (factor === 1) return undefined;
  return {
    quirk: isNorm ? "Q9" : "Q8",
    gradient: question.expected("gradient").map((row) => row.map((value) => value * factor)),
    loss: question.expected<number>("loss") * factor,
  };
}

/** Where ROLL fails: each row by the reward of its own episode. */
function toprChecks(
  { arrays: { mask, logprob, behaviour, advantage, rewards } }: LossSetting,
  weights: Matrix,
  answer: Parameters<typeof lossChecks>[1],
) {
  const point = (i: number, t: number): Point => {
    const ratioOfToken = Math.exp(logprob[i]![t]! - behaviour[i]![t]!);
    const weight = rewards![i]! > 0 ? 1 : Math.min(1, ratioOfToken);
    return [-weight * advantage[i]![t]! * logprob[i]![t]!, -weight * advantage[i]![t]!];
  };
  return lossChecks(mask, answer, { differing: { quirk: "Q15", ...naiveLoss(weights, point) } });
}
