/** ROLL's stages in their order: rewards of steps, normalisation, clipping, KL, advantages; and what GiGPO is here. */

import type { RewardedRollout } from "../../../advantage/advantage.ts";
import { computeAdvantages } from "../../../advantage/registry.ts";
import { normalizeRewards } from "../../../reward/normalize.ts";
import { clip } from "../../../statistics.ts";
import { masked, rewardedRow, rowSums } from "../dense.ts";
import type { Question } from "../golden.ts";
import { indicesBy, mean, std } from "../naive.ts";
import type { Check, Row } from "../row.ts";
import { figuresCheck, onLastAttended, stepReturns, withKl } from "./rewards.ts";
import { advantageStages, onSampledTokens, Q3, Q10 } from "./roll-advantages.ts";

export const rollPipelineRows: readonly Row[] = [
  {
    family: "roll/pipeline",
    named: "/gigpo/",
    hone: "gigpo",
    quirks: {
      Q10,
      Q12: "0 for a group of one follows from the formula, as both moments are the group's",
      Q13: "states are compared within a group, and an episode counts once however many steps it has",
    },
    answer: (question) => {
      const norm = normalizationOf(question);
      const groups = question.names("traj_group_id");
      const returns = stepReturns(question, question.number("step_reward_gamma"));
      const episodes = normalizeRewards(
        question.vector("episode_score"),
        { groups: groupsOf(question) },
        norm,
      );
      const steps = normalizeRewards(
        returns,
        { groups: question.names("state_hash") },
        { ...norm, ...ofGroup(norm) },
      );
      const episodeWeight = question.number("episode_reward_weight");
      const weight = question.number("step_reward_weight");
      const rewards = episodes.map((episode, i) => episodeWeight * episode + weight * steps[i]!);
      return [
        { field: "step_rewards", actual: returns },
        { field: "episode_rewards_norm", actual: episodes },
        { field: "step_rewards_norm", actual: steps },
        ...stagesOf(question, rewards, stateFigures(groups, question.names("state_hash"))),
        ...gigpoOfHone(question),
      ];
    },
  },
  {
    family: "roll/pipeline",
    named: "/step_reinforce/",
    hone: "step_reinforce",
    quirks: { Q10, Q12: "0 for a group of one follows from the formula, as both moments are the group's" },
    answer: (question) => {
      const returns = stepReturns(question, question.number("step_reward_gamma"));
      const norm = normalizationOf(question);
      const rewards = normalizeRewards(returns, { groups: groupsOf(question) }, norm);
      return [
        { field: "step_rewards", actual: returns },
        ...stagesOf(question, rewards, {}),
        ...stepReinforceOfHone(question, rewards),
      ];
    },
  },
  ...["reinforce", "grpo", "gae", "agentic_reinforce"].map(
    (estimator): Row => ({
      family: "roll/pipeline",
      named: `/${estimator}/`,
      hone: estimator === "grpo" ? "reinforce with reward.normalize" : `${estimator} with reward.normalize`,
      quirks: {
        Q3,
        Q10,
        Q11: "what stands on the tokens of a turn is the turn's reward, KL included",
        Q12: "0 for a group of one follows from the formula, as both moments are the group's",
      },
      answer: (question) => {
        const scores = rowSums(question.matrix("scores"));
        return stagesOf(
          question,
          normalizeRewards(scores, { groups: groupsOf(question) }, normalizationOf(question)),
          {},
        );
      },
    }),
  ),
];

/** `mean` and `mean_std` are over groups, or over the batch where that is the grouping. */
function normalizationOf(question: Question) {
  const over = question.text("grouping") === "batch" ? "batch" : "group";
  return { mean: over, std: question.text("method") === "mean_std" ? over : "none", epsilon: 1e-6 } as const;
}

function ofGroup({ std: deviation }: ReturnType<typeof normalizationOf>) {
  return { mean: "group", std: deviation === "none" ? "none" : "group" } as const;
}

function groupsOf(question: Question): readonly string[] {
  return question.names("traj_group_id");
}

/** From the rewards of rows to advantages, with every figure of the reference. */
function stagesOf(
  question: Question,
  rowRewards: readonly number[],
  figures: Record<string, number>,
): Check[] {
  const mask = question.matrix("response_mask");
  const limit = question.optionalNumber("reward_clip");
  const coefficient = question.number("init_kl_coef");
  const clipped = rowRewards.map((reward) => clip(reward, limit ?? null));
  const scores = onLastAttended(clipped, question.matrix("attended"));
  const { rewards, kl, clippedShare } = withKl(question, scores, { coefficient, limit });
  const kept = masked(rewards, mask);
  const stages = advantageStages(question, kept, {
    whitens: question.flag("whiten_advantages"),
    limit: question.optionalNumber("advantage_clip") ?? null,
  });
  const all: Record<string, number> = {
    ...figures,
    "critic/reward_clip_frac":
      clipped.filter((reward, i) => reward !== rowRewards[i]).length / clipped.length,
    "critic/kl": kl,
    "critic/kl_coef": coefficient,
    "critic/token_reward_clip_frac": clippedShare,
    "critic/advantage_clip_frac": stages.clippedShare,
  };
  return [
    { field: "response_level_rewards", actual: clipped },
    { field: "token_level_rewards", actual: rewards },
    { field: "advantages", actual: stages.advantages },
    { field: "returns", actual: stages.returns },
    figuresCheck(question.expected("metrics"), all),
    ...onSampledTokens(question, kept),
  ];
}

/** Sizes of the groups of equal states, which ROLL tells by trajectory group. */
function stateFigures(groups: readonly string[], states: readonly string[]): Record<string, number> {
  const sizes = indicesBy(states.map((state, i) => `${groups[i]} ${state}`)).map(({ length }) => length);
  return {
    "system/state_batch_size/max": Math.max(...sizes),
    "system/state_batch_size/mean": mean(sizes),
    "system/state_batch_size/min": Math.min(...sizes),
  };
}

interface Trajectory {
  readonly group: string;
  /** Rows of its steps, in their order. */
  readonly rows: readonly number[];
}

function trajectoriesOf(question: Question): Trajectory[] {
  const steps = question.vector("step");
  const groups = question.names("traj_group_id");
  return indicesBy(question.names("traj_id")).map((indices) => ({
    group: groups[indices[0]!]!,
    rows: [...indices].sort((a, b) => steps[a]! - steps[b]!),
  }));
}

/** The trajectories as rollouts: each step a turn of one token, in the state that the case names. */
function stepOf(question: Question) {
  const trajectories = trajectoriesOf(question);
  const names = [...new Set(trajectories.map(({ group }) => group))];
  const rewarded = ({ rows }: Trajectory, index: number): RewardedRollout => {
    const mask = rows.flatMap(() => [1, 0]);
    const row = rewardedRow(index, mask, {
      reward: question.vector("episode_score")[rows[0]!]!,
      turnRewards: rows.map((step) => question.vector("step_score")[step]!),
    });
    const turns = row.rollout.turns!.map((turn, i) => ({
      ...turn,
      state: question.names("state_hash")[rows[i]!]!,
    }));
    return { ...row, rollout: { ...row.rollout, turns } };
  };
  const groups = names.map((name) => trajectories.filter(({ group }) => group === name));
  return {
    rows: groups.map((group) => group.map(({ rows }) => rows)),
    step: groups.map((group, task) => ({ task, rollouts: group.map(rewarded) })),
  };
}

/** Q13: Hone's gigpo on the same trajectories, against the paper's formula written out. */
function gigpoOfHone(question: Question): Check[] {
  const { rows, step } = stepOf(question);
  const isByStd = question.text("method") === "mean_std";
  const [episodeWeight, weight, gamma] = [
    "episode_reward_weight",
    "step_reward_weight",
    "step_reward_gamma",
  ].map((name) => question.number(name)) as [number, number, number];
  const config = {
    kind: "gigpo",
    weight,
    episodeWeight,
    gamma,
    normalizeByStd: isByStd,
    epsilon: 1e-6,
    whiten: false,
    clip: null,
  } as const;
  const actual: number[] = [];
  computeAdvantages(step, config).groups.forEach((group, g) => {
    group.forEach(({ turnAdvantages }, i) => {
      rows[g]![i]!.forEach((row, turn) => {
        actual[row] = turnAdvantages![turn]!;
      });
    });
  });
  const compare = (value: number, values: readonly number[]) => {
    if (new Set(values).size === 1) return 0;
    return (value - mean(values)) / (isByStd ? std(values) + 1e-6 : 1);
  };
  const states = question.names("state_hash");
  const groups = question.names("traj_group_id");
  const scores = question.vector("episode_score");
  const returns = stepReturns(question, gamma);
  const expected = states.map((state, row) => {
    const episodes = indicesBy(question.names("traj_id")).filter(([first]) => groups[first!] === groups[row]);
    const met = states.flatMap((each, i) =>
      each === state && groups[i] === groups[row] ? [returns[i]!] : [],
    );
    const ofEpisode = compare(
      scores[row]!,
      episodes.map(([first]) => scores[first!]!),
    );
    return episodeWeight * ofEpisode + weight * compare(returns[row]!, met);
  });
  return [{ field: "gigpo", actual, expected, quirk: "Q13" }];
}

/** Hone's step_reinforce on the same trajectories gives each turn what ROLL gives its row as a reward. */
function stepReinforceOfHone(question: Question, expected: readonly number[]): Check[] {
  const { rows, step } = stepOf(question);
  const config = {
    kind: "step_reinforce",
    gamma: question.number("step_reward_gamma"),
    normalize: normalizationOf(question),
    whiten: false,
    clip: null,
  } as const;
  const actual: number[] = [];
  computeAdvantages(step, config).groups.forEach((group, g) => {
    group.forEach(({ turnAdvantages }, i) => {
      rows[g]![i]!.forEach((row, turn) => {
        actual[row] = turnAdvantages![turn]!;
      });
    });
  });
  return [{ field: "step_reinforce", actual, expected }];
}
