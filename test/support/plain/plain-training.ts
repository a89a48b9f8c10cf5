/**
 * Algorithms written plainly, in float64 and without any of Hone's code, for a test of the record of trained tokens: what
 * each token of a step was worth, how far the policy had moved, what cut it, and what it added to the gradient. A step has one
 * update of all of its rollouts.
 */

import { type PlainModel, plainLogprobs } from "./plain-decoder.ts";

/** A rollout as the kept steps hold it. N sampled tokens of a sample. */
export interface StoredRollout {
  readonly slot: string;
  /** Sum of weight * value of its scores. */
  readonly reward: number;
  readonly samples: readonly {
    readonly tokenIds: readonly number[];
    readonly lossMask: readonly number[];
    /** [N] */
    readonly logprobs: readonly number[];
  }[];
}

export interface PlainToken {
  readonly advantage: number;
  readonly ratio: number;
  readonly cut: string;
  readonly coefficient: number;
  readonly share: number;
  readonly parts: { readonly episode: number; readonly kl: number };
}

/** An algorithm: from the groups of a step to what the record should say. M tokens of a rollout. */
export interface PlainAlgorithm {
  /** As `hone replay --set` takes it. */
  readonly settings: string;
  /** [rollout][M] the parts before whitening; their sum is the advantage where nothing is whitened. */
  readonly parts: (
    groups: readonly (readonly Scored[])[],
  ) => ReadonlyMap<Scored, readonly { readonly episode: number; readonly kl: number }[]>;
  readonly whitens: boolean;
  /** Whether rollouts count alike, or tokens do. */
  readonly weighsRollouts: boolean;
  /** Whether rollouts without an advantage are trained. */
  readonly trainsAll: boolean;
  /**
   * What cuts a token, the ratio that the loss takes, and the derivative of its loss by its log-probability.
   * @param all tokens of its sample
   */
  readonly loss: (
    token: Moved,
    all: readonly Moved[],
  ) => { readonly ratio: number; readonly cut: string; readonly slope: number };
}

/** A rollout with what the policy of the step and the first policy say of its tokens, [M]. */
export interface Scored {
  readonly rollout: StoredRollout;
  readonly sampled: readonly number[];
  readonly now: readonly number[];
  readonly reference: readonly number[];
}

/** A token when it is trained. */
export interface Moved {
  readonly advantage: number;
  readonly sampled: number;
  readonly now: number;
  readonly reference: number;
}

/** @returns by slot the tokens of every rollout that is trained. */
export function trainPlainly(
  groups: readonly (readonly StoredRollout[])[],
  policy: PlainModel,
  first: PlainModel,
  algorithm: PlainAlgorithm,
): ReadonlyMap<string, readonly PlainToken[]> {
  const scored = groups.map((group) => group.map((rollout) => scoredBy(rollout, policy, first)));
  const parts = algorithm.parts(scored);
  const all = scored.flat();
  const whiten = algorithm.whitens ? whitening([...parts.values()].flat().map(sumOfParts)) : undefined;
  const counts = all.map(({ sampled }) => sampled.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const found = new Map<string, PlainToken[]>();
  for (const each of all) {
    const ofRollout = parts.get(each)!;
    const moved = ofRollout.map((part, i): Moved => {
      const made = sumOfParts(part);
      const advantage = whiten === undefined ? made : (made - whiten.mean) / whiten.scale;
      return { advantage, sampled: each.sampled[i]!, now: each.now[i]!, reference: each.reference[i]! };
    });
    if (!algorithm.trainsAll && moved.every(({ advantage }) => advantage === 0)) continue;
    const weight = algorithm.weighsRollouts ? 1 / (all.length * moved.length) : 1 / total;
    const samples = each.rollout.samples.flatMap(({ logprobs }, sample) => logprobs.map(() => sample));
    found.set(
      each.rollout.slot,
      moved.map((token, i) => {
        const { ratio, cut, slope } = algorithm.loss(
          token,
          moved.filter((_, other) => samples[other] === samples[i]),
        );
        const coefficient = weight * slope;
        const share = Math.abs(coefficient) * (1 - Math.exp(token.now));
        return { advantage: token.advantage, ratio, cut, coefficient, share, parts: ofRollout[i]! };
      }),
    );
  }
  const sum = [...found.values()].flat().reduce((pull, { share }) => pull + share, 0);
  return new Map(
    [...found].map(([slot, tokens]) => [
      slot,
      tokens.map((token) => ({ ...token, share: token.share / sum })),
    ]),
  );
}

function scoredBy(rollout: StoredRollout, policy: PlainModel, first: PlainModel): Scored {
  const by = (model: PlainModel) =>
    rollout.samples.flatMap(({ tokenIds, lossMask }) => {
      const logprobs = plainLogprobs(model, tokenIds);
      return logprobs.filter((_, at) => lossMask[at + 1] === 1);
    });
  const sampled = rollout.samples.flatMap(({ logprobs }) => logprobs);
  return { rollout, sampled, now: by(policy), reference: by(first) };
}

function sumOfParts({ episode, kl }: { readonly episode: number; readonly kl: number }): number {
  return episode + kl;
}

function whitening(values: readonly number[]): { readonly mean: number; readonly scale: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, scale: Math.sqrt(squares / (values.length - 1) + 1e-8) };
}

/** Advantages that are one number for each rollout, from the rewards of its group. */
function ofGroups(compare: (rewards: readonly number[]) => readonly number[]): PlainAlgorithm["parts"] {
  return (groups) =>
    new Map(
      groups.flatMap((group) => {
        const advantages = compare(group.map(({ rollout }) => rollout.reward));
        return group.map((each, i) => [each, each.sampled.map(() => ({ episode: advantages[i]!, kl: 0 }))]);
      }),
    );
}

/** The rewards of a group, less their mean, by their deviation. */
const compareAsGrpo = ofGroups((rewards) => {
  if (new Set(rewards).size === 1) return rewards.map(() => 0);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const squares = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (rewards.length - 1));
  return rewards.map((reward) => (reward - mean) / (deviation + 1e-6));
});

/** The rewards of a group, less their mean. */
const compareWithMean = ofGroups((rewards) => {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return rewards.map((reward) => reward - mean);
});

/** PPO's clipped loss, and the KL to the first policy (k3) in it. */
function ppoClip({ low = 0.2, high = 0.28, kl = 0 }): PlainAlgorithm["loss"] {
  return ({ advantage, sampled, now, reference }) => {
    const ratio = Math.exp(now - sampled);
    const cut =
      advantage > 0 && ratio > 1 + high
        ? "clip_high"
        : advantage < 0 && ratio < 1 - low
          ? "clip_low"
          : advantage < 0 && ratio > 3
            ? "dual_clip"
            : "none";
    const ofClip = cut === "none" ? -advantage * ratio : 0;
    // k3 counts up to 10.
    const d = reference - now;
    const ofKl = Math.exp(d) - d - 1 > 10 ? 0 : 1 - Math.exp(d);
    return { ratio, cut, slope: ofClip + kl * ofKl };
  };
}

/** GRPO as run files have it by default. */
export const PLAIN_GRPO: PlainAlgorithm = {
  settings: "algorithm.kl.coefficient=0",
  parts: compareAsGrpo,
  whitens: false,
  weighsRollouts: false,
  trainsAll: false,
  loss: ppoClip({}),
};

/** GRPO without the division by the deviation. */
export const PLAIN_UNSCALED_GRPO: PlainAlgorithm = {
  ...PLAIN_GRPO,
  settings: "algorithm.advantage.normalizeByStd=false",
  parts: compareWithMean,
};

/** GRPO with a narrow clip and the KL in the loss. */
export const PLAIN_GRPO_WITH_KL: PlainAlgorithm = {
  ...PLAIN_GRPO,
  settings:
    "algorithm.advantage.kind=grpo,algorithm.loss.clipLow=0.02,algorithm.loss.clipHigh=0.03,algorithm.kl.coefficient=0.1",
  trainsAll: true,
  loss: ppoClip({ low: 0.02, high: 0.03, kl: 0.1 }),
};

/** REINFORCE++ with PPO's clip, as the first example has it. */
export const PLAIN_REINFORCE: PlainAlgorithm = {
  ...PLAIN_GRPO,
  parts: (groups) =>
    new Map(
      groups.flat().map((each) => [each, each.sampled.map(() => ({ episode: each.rollout.reward, kl: 0 }))]),
    ),
  whitens: true,
};

/** Leave one out, with one ratio for the whole sample. */
export const PLAIN_GSPO: PlainAlgorithm = {
  settings:
    "algorithm.advantage.kind=rloo,algorithm.loss.kind=gspo,algorithm.loss.clipLow=0.01,algorithm.loss.clipHigh=0.01",
  parts: ofGroups((rewards) => {
    const sum = rewards.reduce((total, reward) => total + reward, 0);
    return rewards.map((reward) => reward - (sum - reward) / (rewards.length - 1));
  }),
  whitens: false,
  weighsRollouts: true,
  trainsAll: false,
  loss: ({ advantage }, all) => {
    const mean = all.reduce((sum, { now, sampled }) => sum + now - sampled, 0) / all.length;
    const ratio = Math.exp(mean);
    const cut =
      advantage > 0 && ratio > 1.01 ? "clip_high" : advantage < 0 && ratio < 0.99 ? "clip_low" : "none";
    return { ratio, cut, slope: cut === "none" ? -advantage * ratio : 0 };
  },
};

/** REINFORCE++ with the KL (k1) in the reward, and a bounded weight. */
export const PLAIN_CISPO: PlainAlgorithm = {
  settings:
    "algorithm.advantage.kind=reinforce_plus_plus,algorithm.reward.kl.coefficient=0.01,algorithm.loss.kind=cispo,algorithm.loss.clipHigh=0.02,algorithm.loss.clipLow=0.02",
  parts: (groups) =>
    new Map(
      groups.flat().map((each) => {
        const penalties = each.sampled.map((sampled, i) => -0.01 * (sampled - each.reference[i]!));
        return [
          each,
          penalties.map((_, i) => ({
            episode: each.rollout.reward,
            kl: penalties.slice(i).reduce((sum, penalty) => sum + penalty, 0),
          })),
        ];
      }),
    ),
  whitens: true,
  weighsRollouts: false,
  trainsAll: false,
  loss: ({ advantage, sampled, now }) => {
    const ratio = Math.exp(now - sampled);
    const cut = ratio > 1.02 ? "clip_high" : ratio < 0.98 ? "clip_low" : "none";
    return { ratio, cut, slope: -advantage * Math.min(1.02, Math.max(0.98, ratio)) };
  },
};
