/** verl's estimators that give a row one number from its group. */

import type { RewardComponent, RewardedGroup } from "../../../advantage/advantage.ts";
import { type AdvantageConfig, computeAdvantages } from "../../../advantage/registry.ts";
import { denseAdvantages, groupRows, masked, rewardedRow, rowSums } from "../dense.ts";
import type { Question } from "../golden.ts";
import { indicesBy, mean, std, whiten } from "../naive.ts";
import type { Check, Row } from "../row.ts";

const family = "verl/advantage";
const OPTIONS = { whiten: false, clip: null } as const;
const Q1 = { Q1: "a group of one says nothing about which rollout was better: its advantage is 0" };

export const verlGroupRows: readonly Row[] = [
  groupRow("grpo", (question) => ({ kind: "grpo", ...normalizationOf(question), ...OPTIONS }), {
    naive: (rewards, question) => groupRelative(rewards, question),
  }),
  groupRow("grpo_passk", (question) => ({ kind: "grpo_passk", ...normalizationOf(question), ...OPTIONS }), {
    naive: (rewards, question) => {
      const best = Math.max(...rewards);
      const ordered = [...rewards].sort((a, b) => b - a);
      const gap = (ordered[0]! - ordered[1]!) / (isByStd(question) ? std(rewards) + 1e-6 : 1);
      return rewards.map((reward, index) => (reward === best && rewards.indexOf(best) === index ? gap : 0));
    },
    leaves: { raises: "verl fails on a group of one, Hone gives it 0" },
  }),
  groupRow("rloo", () => ({ kind: "rloo", ...OPTIONS })),
  groupRow("opo", () => ({ kind: "opo", ...OPTIONS })),
  groupRow("gpg", (question) => ({ kind: "gpg", norm: question.number("f_norm"), ...OPTIONS })),
  {
    ...groupRow("rloo", () => ({ kind: "rloo", ...OPTIONS })),
    functions: ["advantage estimator rloo_vectorized"],
    quirks: { Q1: "0, as here" },
  },
  groupRow(
    "reinforce_plus_plus_baseline",
    () => ({ kind: "reinforce_plus_plus_baseline", ...OPTIONS, whiten: true }),
    { naive: (rewards) => rewards.map((reward) => reward - mean(rewards)), isWhitened: true },
  ),
  groupRow("gdpo", (question) => ({ kind: "gdpo", ...normalizationOf(question), ...OPTIONS, whiten: true }), {
    naive: (rewards, question) => groupRelative(rewards, question),
    isWhitened: true,
  }),
  {
    family,
    functions: ["GRPO over the last row of each episode"],
    hone: "grpo, with a rollout of several samples",
    answer: answerEpisodes,
  },
];

interface GroupOptions {
  /** The advantages of a group of more than one; for whitened ones, before they are whitened. */
  readonly naive?: (rewards: readonly number[], question: Question) => number[];
  readonly isWhitened?: boolean;
  readonly leaves?: Record<string, string>;
}

function groupRow(
  kind: AdvantageConfig["kind"],
  configOf: (question: Question) => AdvantageConfig,
  { naive, isWhitened = false, leaves }: GroupOptions = {},
): Row {
  return {
    family,
    functions: [`advantage estimator ${kind}`],
    hone: kind,
    quirks: Q1,
    ...(leaves !== undefined && { leaves }),
    answer: (question) => {
      const mask = question.matrix("response_mask");
      const names = question.names("index");
      const advantages = denseAdvantages(
        names,
        mask,
        computeAdvantages(stepOf(question), configOf(question)).groups,
      );
      if (!question.hasQuirk("Q1")) {
        return [
          { field: "advantages", actual: advantages },
          { field: "returns", actual: advantages },
        ];
      }
      const isChanged = isWhitened || question.golden.expected.raises !== undefined;
      const expected = isChanged ? naiveAdvantages(question, naive!, isWhitened) : withoutSolo(question);
      return ["advantages", "returns"].map((field) => ({ field, actual: advantages, expected, quirk: "Q1" }));
    },
  };
}

function stepOf(question: Question): RewardedGroup[] {
  const mask = question.matrix("response_mask");
  const components = componentsOf(question);
  const rewards = question.has("token_level_rewards")
    ? rowSums(question.matrix("token_level_rewards"))
    : mask.map((_, row) => components![row]!.reduce((sum, { weight, value }) => sum + weight * value, 0));
  const rows = mask.map((bits, row) =>
    rewardedRow(row, bits, { reward: rewards[row]!, components: components?.[row] }),
  );
  return groupRows(question.names("index"), rows);
}

/** The parts of each row's reward, in the cases of gdpo. */
function componentsOf(question: Question): RewardComponent[][] | undefined {
  const keys = question.golden.parameters.gdpo_reward_keys as string[] | undefined;
  if (keys === undefined) return undefined;
  const weights = question.golden.parameters.gdpo_reward_weights as number[] | null;
  return question.matrix("response_mask").map((_, row) =>
    keys.map((name, index) => ({
      name,
      weight: weights?.[index] ?? 1,
      value: question.vector(name)[row]!,
    })),
  );
}

function normalizationOf(question: Question) {
  return { normalizeByStd: isByStd(question), epsilon: question.number("epsilon") };
}

function isByStd(question: Question): boolean {
  return question.golden.parameters.norm_adv_by_std_in_grpo !== false;
}

function groupRelative(rewards: readonly number[], question: Question): number[] {
  const scale = isByStd(question) ? std(rewards) + 1e-6 : 1;
  return rewards.map((reward) => (reward - mean(rewards)) / scale);
}

/** The case's own numbers, with 0 for groups of one. */
function withoutSolo(question: Question): number[][] {
  const advantages = question.expected("advantages").map((row) => [...row]);
  for (const indices of indicesBy(question.names("index"))) {
    if (indices.length === 1) advantages[indices[0]!]!.fill(0);
  }
  return advantages;
}

function naiveAdvantages(
  question: Question,
  ofGroup: (rewards: readonly number[], question: Question) => number[],
  isWhitened: boolean,
): number[][] {
  const mask = question.matrix("response_mask");
  const scores = mask.map(() => 0);
  const parts = componentsOf(question);
  const keys = parts?.[0]?.map((_, index) => index) ?? [undefined];
  for (const indices of indicesBy(question.names("index"))) {
    if (indices.length === 1) continue;
    for (const key of keys) {
      const values = indices.map((row) =>
        key === undefined ? rowSums(question.matrix("token_level_rewards"))[row]! : parts![row]![key]!.value,
      );
      ofGroup(values, question).forEach((advantage, i) => {
        const weight = key === undefined ? 1 : parts![indices[i]!]![key]!.weight;
        scores[indices[i]!] = scores[indices[i]!]! + weight * advantage;
      });
    }
  }
  const dense = mask.map((bits, row) => bits.map(() => scores[row]!));
  return isWhitened ? whiten(dense, mask) : masked(dense, mask);
}

/** Rows of one episode are samples of one rollout, whose reward is that of the last row. */
function answerEpisodes(question: Question): Check[] {
  const mask = question.matrix("response_mask");
  const rewards = rowSums(question.matrix("token_level_rewards"));
  const keys = question.golden.parameters.keys as string[];
  const episodes = indicesBy(keys.map((key) => key.slice(0, key.lastIndexOf("_"))));
  const rows = episodes.map((indices) => {
    const last = indices.at(-1)!;
    const { rollout, ...rest } = rewardedRow(last, mask[last]!, { reward: rewards[last]! });
    const samples = indices.map((row) => rewardedRow(row, mask[row]!, { reward: 0 }).rollout.samples[0]!);
    return { ...rest, rollout: { ...rollout, samples } };
  });
  const names = episodes.map(([first]) => question.names("index")[first!]!);
  const config = { kind: "grpo", normalizeByStd: isByStd(question), epsilon: 1e-6, ...OPTIONS } as const;
  const { groups } = computeAdvantages(groupRows(names, rows), config);
  const ofEpisodes = groups.flat();
  const advantages: number[][] = [];
  episodes.forEach((indices, episode) => {
    for (const row of indices)
      advantages[row] = mask[row]!.map((bit) => bit * ofEpisodes[episode]!.advantage);
  });
  return [{ field: "advantages", actual: advantages }];
}
