/** verl's estimators that follow rewards from token to token. */

import { type AdvantageConfig, computeAdvantages } from "../../../advantage/registry.ts";
import { distancesFromBaselines, gradientNorm } from "../../../advantage/token/optimal-token-baseline.ts";
import { discountedReturns, generalizedAdvantages } from "../../../returns.ts";
import { compact, denseAdvantages, groupRows, masked, rewardedRow, segmentsOf, spread } from "../dense.ts";
import type { Question } from "../golden.ts";
import { indicesBy } from "../naive.ts";
import type { Check, Row } from "../row.ts";

const family = "verl/advantage";
const Q3 =
  "rewards stand on sampled tokens, so none is lost; the formula is compared on those that verl keeps";

export const verlTokenRows: readonly Row[] = [
  {
    family,
    functions: ["advantage estimator gae"],
    hone: "gae",
    quirks: { Q2: "tokens that were not sampled have no advantage", Q3 },
    answer: (question) => {
      const gamma = question.number("gamma");
      const lambda = question.number("lam");
      const mask = question.matrix("response_mask");
      const config = { kind: "gae", gamma, lambda, credit: "turns", whiten: true, clip: null } as const;
      const returns = perRow(
        question,
        (rewards, row) =>
          generalizedAdvantages(rewards, compact(question.matrix("values")[row]!, mask[row]!), {
            gamma,
            lambda,
          }).returns,
      );
      return [
        underMask(question, "advantages", advantagesOf(question, config)),
        underMask(question, "returns", returns),
        ...nothingIsLost(question),
      ];
    },
  },
  {
    family,
    functions: ["advantage estimator reinforce_plus_plus"],
    hone: "reinforce_plus_plus",
    quirks: { Q3 },
    answer: (question) => {
      const gamma = question.number("gamma");
      const config = {
        kind: "reinforce_plus_plus",
        gamma,
        credit: "turns",
        whiten: true,
        clip: null,
      } as const;
      return [
        { field: "advantages", actual: advantagesOf(question, config) },
        underMask(question, "returns", returnsOf(question, gamma)),
        ...nothingIsLost(question),
      ];
    },
  },
  {
    family,
    functions: ["advantage estimator remax"],
    hone: "remax",
    quirks: { Q3 },
    answer: (question) => {
      const baselines = question.vector("reward_baselines");
      const mask = question.matrix("response_mask");
      // A baseline is that of a task; here each row has one of its own, so each row is a task.
      const step = rowsOf(question).map((rewarded, task) => ({
        task,
        rollouts: [rewarded],
        baselineReward: baselines[task]!,
      }));
      const config = { kind: "remax", credit: "turns", whiten: false, clip: null } as const;
      const names = baselines.map((_, row) => String(row));
      const advantages = denseAdvantages(names, mask, computeAdvantages(step, config).groups);
      return [
        underMask(question, "advantages", advantages),
        underMask(question, "returns", returnsOf(question, 1)),
        ...nothingIsLost(question),
      ];
    },
  },
  baselineRow("optimal_token_baseline", {
    Q1: "a group of one has no baseline, and its advantage is 0",
    Q3,
    Q5: "the tail begins after the last position of the others, whatever was not sampled before it",
  }),
  baselineRow("tir_optimal_token_baseline", {
    Q1: "a group of one has no baseline, and its advantage is 0",
    Q3,
  }),
];

function baselineRow(
  kind: "optimal_token_baseline" | "tir_optimal_token_baseline",
  quirks: Record<string, string>,
): Row {
  return {
    family,
    functions: [`advantage estimator ${kind}`],
    hone: kind,
    quirks,
    answer: (question) => {
      const returns = underMask(question, "returns", returnsOf(question, 1));
      const epsilon = question.number("epsilon");
      const zeroTail = question.flag("handle_zero_tail");
      const advantages = question.has("rollout_is_weights")
        ? weightedBaselines(question, kind, { epsilon, zeroTail })
        : advantagesOf(question, { kind, epsilon, zeroTail, credit: "turns", whiten: false, clip: null });
      const expected = question.expected("advantages").map((row) => [...row]);
      for (const indices of indicesBy(question.names("index"))) {
        if (indices.length === 1)
          expected[indices[0]!]!.fill(0); // Q1
        else if (question.hasQuirk("Q5")) tailWithoutBaseline(question, indices, expected);
      }
      const differs = question.hasQuirk("Q1") || question.hasQuirk("Q5");
      const check = differs ? { expected, quirk: "Q1, Q5" } : {};
      return [{ field: "advantages", actual: advantages, ...check }, returns, ...nothingIsLost(question)];
    },
  };
}

/**
 * Q5: in a group whose longest row is alone at its end, what verl gives that row is right up to the end of the others. From
 * verl's token count on it has no baseline; it has one up to the others' last position, which follows from their rows.
 */
function tailWithoutBaseline(question: Question, indices: readonly number[], expected: number[][]): void {
  const mask = question.matrix("response_mask");
  const norms = gradientNorms(question);
  const returns = returnsOf(question, 1);
  const last = (row: number) => mask[row]!.lastIndexOf(1);
  for (const row of indices) {
    const others = Math.max(...indices.filter((other) => other !== row).map(last));
    mask[row]!.forEach((bit, t) => {
      if (bit === 0) return;
      let weighted = 0;
      let weight = 0;
      for (const other of indices) {
        if (mask[other]![t] === 0) continue;
        const reached = norms[other]!.slice(0, t + 1).reduce(
          (sum, norm, at) => sum + norm * mask[other]![at]!,
          0,
        );
        weighted += reached * returns[other]![t]!;
        weight += reached;
      }
      expected[row]![t] = returns[row]![t]! - (t > others ? 0 : weighted / (weight + 1e-8));
    });
  }
}

/** With importance weights, which no run has yet: the same function, a group at a time. */
function weightedBaselines(
  question: Question,
  kind: string,
  options: { readonly epsilon: number; readonly zeroTail: boolean },
): number[][] {
  const mask = question.matrix("response_mask");
  const norms = gradientNorms(question);
  const returns = returnsOf(question, 1);
  const advantages: number[][] = [];
  for (const indices of indicesBy(question.names("index"))) {
    const group = indices.map((row) => ({
      returns: compact(returns[row]!, mask[row]!),
      weights: compact(norms[row]!, mask[row]!),
      positions: kind.startsWith("tir")
        ? compact(mask[row]!, mask[row]!).map((_, t) => t)
        : positionsOf(mask[row]!),
    }));
    distancesFromBaselines(group, options).forEach((row, i) => {
      advantages[indices[i]!] = spread(row, mask[indices[i]!]!);
    });
  }
  return advantages;
}

function gradientNorms(question: Question): number[][] {
  const logprobs = question.matrix("old_log_probs");
  const squares = question.matrix("sum_pi_squared");
  const weights = question.has("rollout_is_weights") ? question.matrix("rollout_is_weights") : undefined;
  return logprobs.map((row, i) =>
    row.map((logprob, t) => gradientNorm(logprob, squares[i]![t]!, weights?.[i]?.[t])),
  );
}

function positionsOf(mask: readonly number[]): number[] {
  return mask.flatMap((bit, t) => (bit === 1 ? [t] : []));
}

/** Rows as rollouts whose turns earned what stands on their sampled tokens. */
function rowsOf(question: Question) {
  const mask = question.matrix("response_mask");
  const rewards = masked(question.matrix("token_level_rewards"), mask);
  return mask.map((bits, row) => {
    const turnRewards = segmentsOf(bits).map(([begin, end]) =>
      rewards[row]!.slice(begin, end).reduce((sum, reward) => sum + reward, 0),
    );
    return rewardedRow(row, bits, {
      reward: turnRewards.reduce((sum, reward) => sum + reward, 0),
      turnRewards,
      ...(question.has("values") && { values: compact(question.matrix("values")[row]!, bits) }),
      ...(question.has("old_log_probs") && {
        logprobs: compact(question.matrix("old_log_probs")[row]!, bits),
        sumsOfSquares: compact(question.matrix("sum_pi_squared")[row]!, bits),
      }),
    });
  });
}

function advantagesOf(question: Question, config: AdvantageConfig): number[][] {
  const mask = question.matrix("response_mask");
  const names = question.has("index") ? question.names("index") : mask.map(() => "one");
  return denseAdvantages(names, mask, computeAdvantages(groupRows(names, rowsOf(question)), config).groups);
}

function returnsOf(question: Question, gamma: number): number[][] {
  return perRow(question, (rewards) => discountedReturns(rewards, gamma));
}

/** A function of the rewards of a row's sampled tokens, back at their positions. */
function perRow(
  question: Question,
  compute: (rewards: readonly number[], row: number) => readonly number[],
): number[][] {
  const mask = question.matrix("response_mask");
  return question
    .matrix("token_level_rewards")
    .map((rewards, row) => spread(compute(compact(rewards, mask[row]!), row), mask[row]!));
}

function underMask(question: Question, field: string, actual: number[][]): Check {
  return { field, actual, expected: masked(question.expected(field), question.matrix("response_mask")) };
}

/** Q3: a rollout with the whole reward of its row has it as its return, wherever the reference has it. */
function nothingIsLost(question: Question): Check[] {
  if (!question.hasQuirk("Q3")) return [];
  const mask = question.matrix("response_mask");
  const rewards = question
    .matrix("token_level_rewards")
    .map((row) => row.reduce((sum, each) => sum + each, 0));
  const names = mask.map(() => "one");
  const step = groupRows(
    names,
    mask.map((bits, row) => rewardedRow(row, bits, { reward: rewards[row]! })),
  );
  const config = { kind: "reinforce", gamma: 1, credit: "episode", whiten: false, clip: null } as const;
  const actual = denseAdvantages(names, mask, computeAdvantages(step, config).groups);
  const expected = mask.map((bits, row) => bits.map((bit) => bit * rewards[row]!));
  return [{ field: "the return of whole rewards", actual, expected, quirk: "Q3" }];
}
