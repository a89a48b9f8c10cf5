/**
 * Normalisation of rewards, as ROLL has it:
 *
 *   r -> (r - mean) / (std + eps)       mean and std each of the whole batch, of r's group or environment, or left out
 *
 * std is the sample deviation (divisor n - 1). Where it is left out nothing is divided, where the mean is left out nothing
 * is taken off. Rewards whose deviation is asked for and that are all equal, or alone, become 0: there is no scale to see
 * them by. ROLL gives 0 to a group of one also where the deviation is the batch's; here the batch decides.
 */

import { z } from "zod";
import { isFlat, meanOf, sampleStd } from "../statistics.ts";

/** Over which rewards a mean or a deviation is taken. Fixed vocabulary of the run file. */
export const Normalization = {
  none: "none",
  batch: "batch",
  group: "group",
  /** The rewards of one environment, or of one data source. ROLL: grouping tags, with group. */
  environment: "environment",
} as const;
export type Normalization = (typeof Normalization)[keyof typeof Normalization];

/** The option `normalize`. */
export const normalizeShape = {
  /** What is taken off. */
  mean: z.enum(Normalization).default(Normalization.group),
  /** By what is divided. */
  std: z.enum(Normalization).default(Normalization.group),
  /** Added to the deviation. */
  epsilon: z.number().positive().default(1e-6),
};
export type NormalizeOptions = z.output<z.ZodObject<typeof normalizeShape>>;

/** Whether rewards of one environment are taken together. */
export function comparesEnvironments({ mean, std }: NormalizeOptions): boolean {
  return mean === Normalization.environment || std === Normalization.environment;
}

/** What each reward belongs to. */
export interface Belonging {
  readonly groups: readonly PropertyKey[];
  readonly environments?: readonly PropertyKey[];
}

/** @returns one number per reward, in their order. */
export function normalizeRewards(
  rewards: readonly number[],
  { groups, environments = rewards.map(() => "") }: Belonging,
  { mean, std, epsilon }: NormalizeOptions,
): number[] {
  const parts = { group: partsBy(rewards, groups), environment: partsBy(rewards, environments) };
  const over = (moment: Normalization, index: number) =>
    moment === Normalization.group || moment === Normalization.environment ? parts[moment][index]! : rewards;
  const means = momentsBy(meanOf);
  const deviations = momentsBy(sampleStd);
  return rewards.map((reward, index) => {
    const meanValues = over(mean, index);
    const isOneOfEquals = mean !== Normalization.none && isFlat(meanValues);
    const centred = mean === Normalization.none ? reward : isOneOfEquals ? 0 : reward - means(meanValues);
    if (std === Normalization.none) return centred;
    const deviation = deviations(over(std, index));
    return deviation === 0 ? 0 : centred / (deviation + epsilon);
  });
}

/** For each reward, those that it is compared with. */
function partsBy(rewards: readonly number[], keyOf: readonly PropertyKey[]): (readonly number[])[] {
  const indices = Map.groupBy(rewards.keys(), (index) => keyOf[index]);
  const parts = new Map([...indices].map(([key, places]) => [key, places.map((index) => rewards[index]!)]));
  return keyOf.map((key) => parts.get(key)!);
}

/** A moment, computed once for each list of numbers. */
function momentsBy(moment: (values: readonly number[]) => number): (values: readonly number[]) => number {
  const known = new Map<readonly number[], number>();
  return (values) => {
    const found = known.get(values) ?? moment(values);
    known.set(values, found);
    return found;
  };
}
