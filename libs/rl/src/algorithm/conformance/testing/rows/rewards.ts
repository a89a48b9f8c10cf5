/** What becomes of rewards: normalisation, KL, length, the filter of flat groups. */

import { estimateKl, type KlKind } from "../../../kl/estimators.ts";
import { discountedReturns } from "../../../returns.ts";
import { adaptKlCoefficient, meanKl } from "../../../reward/kl-penalty.ts";
import { lengthPenalty } from "../../../reward/length-penalty.ts";
import { addBatch, NO_MOMENTS, stdOf } from "../../../reward/moments.ts";
import { type Normalization, normalizeRewards } from "../../../reward/normalize.ts";
import { filterFlatGroups } from "../../../sampling/flat-groups.ts";
import { clip, meanOf, sampleStd } from "../../../statistics.ts";
import { compact } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { indicesBy, mean, std } from "../naive.ts";
import type { Check, Row } from "../row.ts";

/** Names of the estimates in verl and ROLL. */
const KL_KINDS: Readonly<Record<string, KlKind>> = {
  kl: "k1",
  k1: "k1",
  abs: "abs",
  mse: "k2",
  k2: "k2",
  low_var_kl: "k3",
  k3: "k3",
};

export const rewardRows: readonly Row[] = [
  {
    family: "roll/reward-norm",
    hone: "reward.normalize",
    quirks: {
      Q12: "a batch deviation also scales groups of one and of equal rewards; asym_clip is no name of ours, as it equals mean_std",
    },
    answer: answerNormalization,
  },
  {
    family: "roll/reward-norm-rlvr",
    hone: "reward.normalize",
    quirks: { Q14: "each reward is divided by the deviation of its own group" },
    answer: answerConsecutiveGroups,
  },
  {
    family: "roll/discounted-returns",
    hone: "discountedReturns",
    answer: (question) => [
      { field: "step_rewards", actual: stepReturns(question, question.number("gamma")) },
    ],
  },
  ...["verl/kl-penalty", "roll/kl"].map(
    (family): Row => ({
      family,
      hone: "estimateKl",
      leaves: {
        gradient_of_sum: "a reward has no gradient; losses.ts has that of the loss",
        raises: "`full` needs whole distributions and is no name of ours",
      },
      answer: answerKl,
    }),
  ),
  ...["verl/kl-controller", "roll/kl-controller"].map(
    (family): Row => ({
      family,
      hone: "adaptKlCoefficient",
      answer: (question) => {
        let coefficient = question.number("init_kl_coef");
        const target = question.optionalNumber("target_kl") ?? question.number("target");
        const horizon = question.number("horizon");
        const values = question.matrix("updates").map(([kl, count]) => {
          coefficient = adaptKlCoefficient(coefficient, kl!, count!, { target, horizon });
          return coefficient;
        });
        return [{ field: "values", actual: values }];
      },
    }),
  ),
  {
    family: "verl/kl-in-reward",
    functions: ["apply_kl_penalty"],
    hone: "estimateKl, meanKl, adaptKlCoefficient",
    quirks: { Q7: "a row without a sampled token counts in the mean; a step of Hone has none" },
    answer: (question) =>
      answerKlInReward(question, "actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff"),
  },
  {
    family: "verl/kl-in-reward",
    functions: ["compute_rewards"],
    hone: "estimateKl",
    quirks: { Q7: "the penalty is of sampled tokens only" },
    answer: (question) => {
      const mask = question.ofSet<Matrix>("response_mask");
      const beta = question.number("kl_ratio");
      const penalties = klOf(question, "k1", mask);
      const actual = question
        .matrix("token_level_scores")
        .map((row, i) => row.map((score, t) => score - beta * penalties[i]![t]!));
      const expected = question
        .expected("token_level_rewards")
        .map((row, i) =>
          row.map((reward, t) =>
            mask[i]![t] === 1 ? reward : question.matrix("token_level_scores")[i]![t]!,
          ),
        );
      return [{ field: "token_level_rewards", actual, expected, quirk: "Q7" }];
    },
  },
  ...["roll/kl-in-reward", "roll/token-reward"].map(
    (family): Row => ({
      family,
      hone: "estimateKl, meanKl, adaptKlCoefficient, clip",
      answer: (question) => answerKlInReward(question, "critic/kl", "critic/kl_coef"),
    }),
  ),
  {
    family: "verl/dapo",
    functions: ["DAPO reward manager"],
    hone: "reward.overlong",
    leaves: { position: "a row's reward stands on its last sampled token" },
    answer: (question) => {
      const options = {
        limit: question.number("max_resp_len"),
        buffer: question.number("overlong_buffer.len"),
        factor: question.number("overlong_buffer.penalty_factor"),
      };
      const penalties = question.vector("response_lengths").map((length) => lengthPenalty(length, options));
      return [
        { field: "overlong_reward", actual: penalties },
        { field: "reward", actual: question.vector("scores").map((score, i) => score + penalties[i]!) },
      ];
    },
  },
  {
    family: "verl/dapo",
    functions: ["group filter"],
    hone: "filterFlatGroups",
    quirks: { Q7: "[0.1, 0.1, 0.1] is filtered too: figures are compared with each other" },
    answer: answerFilter,
  },
];

/** ROLL's name of a moment: a group, or the batch, or none of it. */
function momentOf(name: unknown): Normalization {
  return (name ?? "none") as Normalization;
}

function answerNormalization(question: Question): Check[] {
  const scores = question.vector("scores");
  const { parameters } = question.golden;
  const meanOver = momentOf(
    parameters.method === undefined ? parameters.norm_mean_type : parameters.resolved_mean_type,
  );
  const stdOver = momentOf(
    parameters.method === undefined ? parameters.norm_std_type : parameters.resolved_std_type,
  );
  const groupOf = question.has("grouping_key") ? question.names("grouping_key") : groupsOf(question);
  const actual = normalizeRewards(
    scores,
    { groups: groupOf },
    { mean: meanOver, std: stdOver, epsilon: 1e-6 },
  );
  const expected = [...question.expected<number[]>("rewards")];
  let differs = false;
  for (const indices of indicesBy(groupOf)) {
    const values = indices.map((index) => scores[index]!);
    if (stdOver !== "batch" || new Set(values).size > 1) continue;
    const middle = { none: 0, batch: mean(scores), group: mean(values), environment: 0 }[meanOver];
    for (const index of indices) expected[index] = (scores[index]! - middle) / (std(scores) + 1e-6);
    differs = true;
  }
  return [{ field: "rewards", actual, expected, ...(differs && { quirk: "Q12" }) }];
}

function groupsOf(question: Question): string[] {
  const grouping = question.text("grouping");
  if (grouping === "batch") return question.vector("scores").map(() => "batch");
  if (question.has(grouping)) return [...question.names(grouping)];
  return question.ofSet<string[]>("group").map(String);
}

function answerConsecutiveGroups(question: Question): Check[] {
  const rewards = question.vector("response_level_rewards");
  const size = question.number("n_sample");
  const groupOf = rewards.map((_, index) => Math.floor(index / size));
  const { norm_mean_type: meanOver, norm_std_type: stdOver } = question.golden.parameters;
  const actual =
    meanOver === "running" || stdOver === "running"
      ? runningNormalization(rewards, groupOf, meanOver, stdOver)
      : normalizeRewards(
          rewards,
          { groups: groupOf },
          {
            mean: momentOf(meanOver),
            std: momentOf(stdOver),
            epsilon: 1e-6,
          },
        );
  if (!question.hasQuirk("Q14")) return [{ field: "rewards", actual }];
  const byGroup = question.expected("rewards");
  const expected = rewards.map((_, index) => byGroup[groupOf[index]!]![index]!);
  return [{ field: "rewards", actual, expected, quirk: "Q14" }];
}

/** The first batch of a run, where the moments so far are the batch's. */
function runningNormalization(
  rewards: readonly number[],
  groupOf: readonly number[],
  meanOver: unknown,
  stdOver: unknown,
): number[] {
  const running = addBatch(NO_MOMENTS, rewards);
  return rewards.map((reward, index) => {
    const group = rewards.filter((_, other) => groupOf[other] === groupOf[index]);
    const middle = { running: running.mean, batch: meanOf(rewards), group: meanOf(group), null: 0 }[
      String(meanOver)
    ]!;
    const scale = {
      running: stdOf(running),
      batch: sampleStd(rewards),
      group: sampleStd(group),
      null: undefined,
    }[String(stdOver)];
    return scale === undefined ? reward - middle : (reward - middle) / (scale + 1e-6);
  });
}

/** The discounted return of each step of its trajectory. */
export function stepReturns(question: Question, gamma: number): number[] {
  const steps = question.vector("step");
  const scores = question.vector("step_score");
  const returns: number[] = [];
  for (const indices of indicesBy(question.names("traj_id"))) {
    const ordered = [...indices].sort((a, b) => steps[a]! - steps[b]!);
    const ofSteps = discountedReturns(
      ordered.map((index) => scores[index]!),
      gamma,
    );
    ordered.forEach((index, i) => {
      returns[index] = ofSteps[i]!;
    });
  }
  return returns;
}

function answerKl(question: Question): Check[] {
  const named = question.text("kl_penalty").replace("+", "");
  const kind = KL_KINDS[named];
  if (kind === undefined) return [];
  const isMasked = question.has("action_mask");
  const logprobs = question.matrix(isMasked ? "log_probs" : "logprob");
  const references = question.matrix(isMasked ? "log_probs_base" : "ref_logprob");
  const penalty = logprobs.map((row, i) =>
    row.map((logprob, t) =>
      isMasked && question.matrix("action_mask")[i]![t] === 0
        ? 0
        : estimateKl(kind, logprob, references[i]![t]!),
    ),
  );
  return [{ field: "penalty", actual: penalty }];
}

/** [rows by positions] KL of sampled tokens. */
function klOf(question: Question, kind: KlKind, mask: Matrix): number[][] {
  const name = question.has("old_log_probs") ? "old_log_probs" : "old_log_prob";
  const logprobs = question.matrix(name);
  const references = question.matrix(question.has("ref_log_probs") ? "ref_log_probs" : "ref_log_prob");
  return logprobs.map((row, i) =>
    row.map((logprob, t) => (mask[i]![t] === 0 ? 0 : estimateKl(kind, logprob, references[i]![t]!))),
  );
}

/** Rewards of tokens with KL taken off and clipped, and the figures of it. */
export interface TokenRewards {
  readonly rewards: number[][];
  readonly kl: number;
  readonly clippedShare: number;
}

/** @param scores [rows by positions] */
export function withKl(
  question: Question,
  scores: Matrix,
  { coefficient, limit }: { readonly coefficient: number; readonly limit: number | undefined },
): TokenRewards {
  const mask = question.matrix("response_mask");
  const kind = KL_KINDS[question.text("kl_penalty").replace("+", "")]!;
  const penalties = klOf(question, kind, mask);
  const raw = scores.map((row, i) => row.map((score, t) => score - coefficient * penalties[i]![t]!));
  const rewards = raw.map((row) => row.map((reward) => clip(reward, limit ?? null)));
  const clipped = raw.flat().filter((reward, index) => reward !== rewards.flat()[index]).length;
  return {
    rewards,
    kl: meanKl(penalties.map((row, i) => compact(row, mask[i]!))),
    clippedShare: clipped / raw.flat().length,
  };
}

/** [rows by positions] one number of each row on its last attended position. */
export function onLastAttended(values: readonly number[], attended: Matrix): number[][] {
  return attended.map((row, i) => row.map((_, t) => (t === row.lastIndexOf(1) ? values[i]! : 0)));
}

function answerKlInReward(question: Question, klName: string, coefficientName: string): Check[] {
  const isByRow = question.has("response_level_rewards");
  const scores = isByRow
    ? onLastAttended(question.vector("response_level_rewards"), question.matrix("attended"))
    : question.matrix("token_level_scores");
  const first = question.number("init_kl_coef");
  const coefficient = question.golden.parameters.add_token_level_kl === false ? 0 : first;
  const limit = question.optionalNumber("reward_clip");
  const { rewards, kl, clippedShare } = withKl(question, scores, { coefficient, limit });
  const after = adaptKlCoefficient(first, kl, scores.length, {
    target: question.number("target_kl"),
    horizon: question.optionalNumber("kl_horizon") ?? question.number("horizon"),
  });
  const metrics = question.expected<Record<string, number>>("metrics");
  const figures: Record<string, number> = {
    [klName]: kl,
    [coefficientName]: coefficient,
    "critic/token_reward_clip_frac": clippedShare,
  };
  return [
    { field: "token_level_rewards", actual: rewards },
    { field: "coefficient_after", actual: after },
    figuresCheck(metrics, figures),
  ];
}

/** All figures that the reference has, each by its name. */
export function figuresCheck(expected: Record<string, number>, actual: Record<string, number>): Check {
  const names = Object.keys(expected).sort();
  return {
    field: "metrics",
    actual: names.map((name) => actual[name] ?? Number.NaN),
    expected: names.map((name) => expected[name]!),
    isMetric: true,
  };
}

function answerFilter(question: Question): Check[] {
  const scores = Object.entries(question.golden.inputs.scores as Record<string, number[]>);
  const { kept, flat, flatByFigure } = filterFlatGroups(scores, ([, figures]) => figures);
  const isRounded = (name: string) =>
    new Set((question.golden.inputs.scores as Record<string, number[]>)[name]!).size === 1;
  const missed = question.expected<string[]>("kept").filter((name) => {
    const figures = (question.golden.inputs.scores as Record<string, number[]>)[name]!;
    return figures.length > 1 && isRounded(name);
  });
  const expectedFlat = [...question.expected<string[]>("filtered"), ...missed];
  const expectedKept = question.expected<string[]>("kept").filter((name) => !missed.includes(name));
  const positions = (names: readonly string[]) =>
    names.map((name) => scores.findIndex(([each]) => each === name)).sort();
  const byValue = { ...question.expected<Record<string, number>>("filtered_by_value") };
  for (const name of missed) {
    const value = String((question.golden.inputs.scores as Record<string, number[]>)[name]![0]);
    byValue[value] = (byValue[value] ?? 0) + 1;
  }
  const pairs = Object.entries(byValue)
    .map(([value, count]): [number, number] => [Number(value), count])
    .sort(([a], [b]) => a - b);
  return [
    {
      field: "filtered",
      actual: positions(flat.map(([name]) => name)),
      expected: positions(expectedFlat),
      quirk: "Q7",
    },
    {
      field: "kept",
      actual: positions(kept.map(([name]) => name)),
      expected: positions(expectedKept),
      quirk: "Q7",
    },
    {
      field: "filtered_by_value",
      actual: [...flatByFigure].map((pair) => [...pair]),
      expected: pairs,
      quirk: "Q7",
    },
  ];
}
