/** The rollouts and tokens of a step that added most to its gradient. */

import { slotKey } from "@hone/core";
import {
  advantagesOfSample,
  type CreditedRollout,
  placeOfSample,
  type Rollout,
  type TokenCut,
} from "@hone/rl";
import type { RolloutShare, StepGradient, TokenShare } from "./rollout-tokens.ts";

/** What the tokens of a rollout added. N sampled tokens of a sample. */
export interface RolloutSums {
  /** Sum of |pull| over tokens and updates. */
  pull: number;
  /** In the order of the rollout's samples. */
  readonly samples: readonly SampleSums[];
}

interface SampleSums {
  /** [N] sum of |pull| over updates. */
  readonly pulls: Float64Array;
  /** What the last update found, [N] each. */
  last:
    | {
        readonly coefficients: Float64Array;
        readonly ratios: Float64Array;
        readonly cuts: readonly TokenCut[];
      }
    | undefined;
}

const TOP = 10;

interface Place {
  readonly credited: CreditedRollout;
  readonly sample: number;
  readonly token: number;
  readonly pull: number;
}

/** @returns the largest ones first; equal ones in the order of their slots. */
export function topShares(
  sums: ReadonlyMap<CreditedRollout, RolloutSums>,
): Pick<StepGradient, "pull" | "topRollouts" | "topTokens"> {
  const total = [...sums.values()].reduce((sum, { pull }) => sum + pull, 0);
  const share = (pull: number) => (total === 0 ? 0 : pull / total);
  const best = [...sums].sort(([, a], [, b]) => b.pull - a.pull).slice(0, TOP);
  const topRollouts = best.map(
    ([{ rollout, reward, advantage }, { pull, samples }]): RolloutShare => ({
      ...placeOf(rollout),
      tokens: samples.reduce((count, { pulls }) => count + pulls.length, 0),
      reward,
      advantage,
      pull,
      share: share(pull),
    }),
  );
  const topTokens = topPlaces(sums).map((place) => tokenShare(place, sums.get(place.credited)!, share));
  return { pull: total, topRollouts, topTokens };
}

/** A small list in order, into which each token that is larger than its last goes. */
function topPlaces(sums: ReadonlyMap<CreditedRollout, RolloutSums>): Place[] {
  const top: Place[] = [];
  for (const [credited, { samples }] of sums) {
    samples.forEach(({ pulls }, sample) => {
      pulls.forEach((pull, token) => {
        if (pull === 0 || (top.length === TOP && pull <= top.at(-1)!.pull)) return;
        const at = top.findIndex((other) => other.pull < pull);
        top.splice(at === -1 ? top.length : at, 0, { credited, sample, token, pull });
        if (top.length > TOP) top.pop();
      });
    });
  }
  return top;
}

function tokenShare(
  { credited, sample, token, pull }: Place,
  sums: RolloutSums,
  share: (pull: number) => number,
): TokenShare {
  const { rollout } = credited;
  const { lossMask, tokenIds } = rollout.samples[sample]!;
  const position = positionOf(lossMask, token);
  const { coefficients, ratios, cuts } = sums.samples[sample]!.last!;
  return {
    ...placeOf(rollout),
    sample: placeOfSample(rollout, sample),
    position,
    tokenId: tokenIds[position]!,
    pull,
    share: share(pull),
    advantage: advantagesOfSample(credited, sample)[token]!,
    coefficient: coefficients[token]!,
    ratio: ratios[token]!,
    cut: cuts[token]!,
  };
}

function placeOf({ slot, role }: Rollout): Pick<RolloutShare, "slot" | "role"> {
  return { slot: slotKey(slot), ...(role !== undefined && { role }) };
}

/** Where the sampled token of that number stands. */
function positionOf(lossMask: Uint8Array, token: number): number {
  let left = token;
  return lossMask.findIndex((bit) => bit === 1 && left-- === 0);
}
