/** From the rows of the golden cases (rows by positions, with a mask) to Hone's rollouts and back. */

import type { TurnSpan } from "../../../rollout.ts";
import { rolloutOf } from "../../../testing.ts";
import type { RewardedGroup, RewardedRollout, RolloutAdvantage } from "../../advantage/advantage.ts";
import type { Matrix } from "./golden.ts";

/** x under the mask, row by row. */
export function compact(values: readonly number[], mask: readonly number[]): number[] {
  return values.filter((_, position) => mask[position] === 1);
}

/** [T] numbers of sampled tokens at their positions, 0 elsewhere. */
export function spread(values: readonly number[], mask: readonly number[]): number[] {
  let next = 0;
  return mask.map((bit) => (bit === 1 ? values[next++]! : 0));
}

/** The tokens of all rows, one row after the other, at their positions; 0 elsewhere. */
export function denseOf(mask: Matrix, tokens: readonly number[]): number[][] {
  let from = 0;
  return mask.map((row) => {
    const count = row.reduce((sum, bit) => sum + bit, 0);
    from += count;
    return spread(tokens.slice(from - count, from), row);
  });
}

export function masked(values: Matrix, mask: Matrix): number[][] {
  return values.map((row, i) => row.map((value, t) => value * mask[i]![t]!));
}

export function rowSums(values: Matrix): number[] {
  return values.map((row) => row.reduce((sum, value) => sum + value, 0));
}

/** Runs of sampled tokens: [begin, end) positions. */
export function segmentsOf(mask: readonly number[]): [number, number][] {
  const begins = mask.flatMap((bit, t) => (bit === 1 && mask[t - 1] !== 1 ? [t] : []));
  return begins.map((begin) => {
    const end = mask.indexOf(0, begin);
    return [begin, end === -1 ? mask.length : end];
  });
}

/** What a row is worth. */
export interface Worth extends Omit<RewardedRollout, "rollout" | "turnRewards"> {
  readonly turnRewards?: readonly number[] | undefined;
  readonly logprobs?: readonly number[];
}

/** A rollout of one sample: a token of prompt, then the positions of a row; each run of sampled tokens is a turn. */
export function rewardedRow(
  index: number,
  mask: readonly number[],
  { logprobs, turnRewards, ...worth }: Worth,
): RewardedRollout {
  const turns: TurnSpan[] = segmentsOf(mask).map(([begin, end]) => ({
    sample: 0,
    begin: begin + 1,
    end: end + 1,
  }));
  const sample = {
    tokenIds: Array.from({ length: mask.length + 1 }, (_, t) => t),
    lossMask: Uint8Array.of(0, ...mask),
    logprobs: logprobs ?? mask.filter((bit) => bit === 1).map(() => -1),
    versions: [],
  };
  const rollout = rolloutOf(0, index, worth.reward, { samples: [sample], turns, turnCount: turns.length });
  return { ...worth, rollout, turnRewards };
}

/** Groups rows by name, in the order in which names first come. */
export function groupRows(names: readonly string[], rows: readonly RewardedRollout[]): RewardedGroup[] {
  return [...Map.groupBy(rows, (_, row) => names[row]!).values()].map((rollouts, task) => ({
    task,
    rollouts,
  }));
}

/** [rows by positions] the advantage of each sampled token, 0 elsewhere. */
export function denseAdvantages(
  names: readonly string[],
  mask: Matrix,
  groups: readonly (readonly RolloutAdvantage[])[],
): number[][] {
  const indices = [...Map.groupBy(names.keys(), (row) => names[row]!).values()];
  const dense: number[][] = [];
  indices.forEach((rows, group) => {
    rows.forEach((row, i) => {
      dense[row] = denseRow(mask[row]!, groups[group]![i]!);
    });
  });
  return dense;
}

function denseRow(
  mask: readonly number[],
  { advantage, turnAdvantages, tokenAdvantages }: RolloutAdvantage,
): number[] {
  if (tokenAdvantages !== undefined) return spread([...tokenAdvantages], mask);
  const segments = segmentsOf(mask);
  return mask.map((bit, t) => {
    if (bit === 0) return 0;
    const turn = segments.findIndex(([begin, end]) => t >= begin && t < end);
    return turnAdvantages?.[turn] ?? advantage;
  });
}
