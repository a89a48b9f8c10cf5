/** What is done with the advantages of any algorithm: whitening over the step's tokens, then clipping. */

import { z } from "zod";
import { type Rollout, rolloutTokenCount, sampledTokenCount } from "../../rollout.ts";
import { clip, type Repeated, whiteningOf } from "../statistics.ts";
import type { RewardedGroup, RolloutAdvantage, StepAdvantages } from "./advantage.ts";

/** Keys of every algorithm. @param whitens the default of `whiten`. */
export function shapeOfEvery(whitens: boolean) {
  return {
    /** Whether advantages are whitened over all tokens of the step: (A - mean) / sqrt(variance + 1e-8). ROLL: whiten_advantages. */
    whiten: z.boolean().default(whitens),
    /** Advantages are kept within [-clip, clip]; null = they stay as they are. ROLL: advantage_clip. */
    clip: z.number().positive().nullable().default(null),
  };
}

export type ShapeOptions = z.output<z.ZodObject<ReturnType<typeof shapeOfEvery>>>;

/** The advantages after both, with the share of tokens that were clipped as a figure. */
export function shapeAdvantages(
  step: readonly RewardedGroup[],
  { groups, metrics }: StepAdvantages,
  { whiten, clip: limit }: ShapeOptions,
): StepAdvantages {
  if (!whiten && limit === null) return { groups, ...(metrics !== undefined && { metrics }) };
  const rollouts = step.map((group) => group.rollouts.map(({ rollout }) => rollout));
  const whitening = whiten
    ? whiteningOf(groups.flatMap((group, i) => group.flatMap((each, j) => tokensOf(each, rollouts[i]![j]!))))
    : undefined;
  const whitened =
    whitening === undefined
      ? groups
      : mapAdvantages(groups, (value) =>
          whitening.isEqual ? 0 : (value - whitening.mean) / whitening.scale,
        );
  const shaping = {
    ...(whitening !== undefined && { whitening: { mean: whitening.mean, scale: whitening.scale } }),
    ...(limit !== null && { clip: limit }),
  };
  if (limit === null) return { groups: whitened, shaping, ...(metrics !== undefined && { metrics }) };
  const tokens = whitened.flatMap((group, i) => group.flatMap((each, j) => tokensOf(each, rollouts[i]![j]!)));
  const total = tokens.reduce((sum, { count }) => sum + count, 0);
  const clipped = tokens.reduce((sum, { value, count }) => (Math.abs(value) > limit ? sum + count : sum), 0);
  return {
    groups: mapAdvantages(whitened, (value) => clip(value, limit)),
    shaping,
    metrics: { ...metrics, "clipped/share": total === 0 ? 0 : clipped / total },
  };
}

function mapAdvantages(
  groups: StepAdvantages["groups"],
  change: (value: number) => number,
): readonly (readonly RolloutAdvantage[])[] {
  // + 0: a ledger that keeps numbers as text knows no -0.
  const changed = (value: number) => change(value) + 0;
  return groups.map((group) =>
    group.map(({ advantage, turnAdvantages, tokenAdvantages, ...rest }) => ({
      ...rest,
      advantage: changed(advantage),
      ...(turnAdvantages !== undefined && { turnAdvantages: turnAdvantages.map(changed) }),
      ...(tokenAdvantages !== undefined && { tokenAdvantages: tokenAdvantages.map(changed) }),
    })),
  );
}

/** The advantages of a rollout's tokens, equal ones together. */
function tokensOf(
  { advantage, turnAdvantages, tokenAdvantages }: RolloutAdvantage,
  rollout: Rollout,
): Repeated[] {
  if (tokenAdvantages !== undefined) return Array.from(tokenAdvantages, (value) => ({ value, count: 1 }));
  const total = rolloutTokenCount(rollout);
  if (turnAdvantages === undefined) return [{ value: advantage, count: total }];
  const ofTurns = (rollout.turns ?? []).map(({ sample, begin, end }, turn) => {
    const row = rollout.samples[sample];
    const count = row === undefined ? 0 : sampledTokenCount({ lossMask: row.lossMask.subarray(begin, end) });
    return { value: turnAdvantages[turn] ?? advantage, count };
  });
  const covered = ofTurns.reduce((sum, { count }) => sum + count, 0);
  return [...ofTurns, { value: advantage, count: Math.max(0, total - covered) }];
}
