/** The advantages of a rollout's single tokens, whichever of its three forms they are given in. */

import { type Rollout, rolloutTokenCount, type Sample, sampledTokenCount } from "../../rollout.ts";
import type { RolloutAdvantage } from "./advantage.ts";

/** A rollout with what its tokens are worth. */
export interface WorthOfRollout extends RolloutAdvantage {
  readonly rollout: Rollout;
}

/** Whether any token of a rollout has an advantage: without one it gives no gradient. */
export function hasAdvantage({ advantage, turnAdvantages, tokenAdvantages }: RolloutAdvantage): boolean {
  if (tokenAdvantages !== undefined) return tokenAdvantages.some((each) => each !== 0);
  return turnAdvantages === undefined ? advantage !== 0 : turnAdvantages.some((each) => each !== 0);
}

/**
 * @param sample index of one of the rollout's samples.
 * @returns [N] the advantage of each of its sampled tokens.
 */
export function advantagesOfSample(
  { rollout, advantage, turnAdvantages, tokenAdvantages }: WorthOfRollout,
  sample: number,
): Float32Array {
  const row = rollout.samples[sample]!;
  if (tokenAdvantages !== undefined) {
    const begin = rollout.samples.slice(0, sample).reduce((sum, each) => sum + sampledTokenCount(each), 0);
    return Float32Array.from(tokenAdvantages.subarray(begin, begin + sampledTokenCount(row)));
  }
  const advantages = new Float32Array(sampledTokenCount(row)).fill(advantage);
  if (turnAdvantages === undefined || rollout.turns === undefined) return advantages;
  const sampledBefore = countSampled(row);
  rollout.turns.forEach((turn, index) => {
    if (turn.sample !== sample) return;
    advantages.fill(turnAdvantages[index] ?? advantage, sampledBefore[turn.begin], sampledBefore[turn.end]);
  });
  return advantages;
}

/**
 * The same rollout with something added to the advantage of each token.
 * @param added [N] in the order of the samples.
 */
export function addToTokens(
  { rollout, ...worth }: WorthOfRollout,
  added: ArrayLike<number>,
): RolloutAdvantage {
  const { turnAdvantages: _, ...rest } = worth;
  const tokenAdvantages = new Float64Array(rolloutTokenCount(rollout));
  let at = 0;
  rollout.samples.forEach((_, sample) => {
    for (const value of advantagesOfSample({ rollout, ...worth }, sample)) {
      // + 0: a ledger that keeps numbers as text knows no -0.
      tokenAdvantages[at] = value + added[at]! + 0;
      at++;
    }
  });
  const sum = tokenAdvantages.reduce((total, value) => total + value, 0);
  return { ...rest, advantage: at === 0 ? 0 : sum / at, tokenAdvantages };
}

/** [T + 1] how many sampled tokens stand before each position. */
function countSampled({ lossMask }: Sample): Uint32Array {
  const before = new Uint32Array(lossMask.length + 1);
  lossMask.forEach((bit, position) => {
    before[position + 1] = before[position]! + bit;
  });
  return before;
}
