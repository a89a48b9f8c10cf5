/**
 * A curriculum by past success: which tasks are taken as training goes round its dataset.
 *
 * U1: a task that was never trained is taken: nothing is known of it.
 * U2: one whose recent success lies within the bounds is taken; of the others each with a chance, as they may have become
 *     easier, or been forgotten.
 * U3: the draw is a function of the seed and the position: the same history makes the same choice.
 */

import { deriveSeed, Random } from "@hone/core";
import { z } from "zod";
import type { OutcomeRules } from "./algorithm/schema.ts";
import type { PassRule } from "./metrics/evaluation-metrics.ts";
import { isPassed } from "./metrics/evaluation-metrics.ts";
import { rewardOf } from "./rewards.ts";
import type { Rollout } from "./rollout.ts";

/** `dataset.curriculum` of a run file: which tasks are taken as training goes round its dataset, by how they went before. */
export const curriculumSchema = z.strictObject({
  kind: z.literal("success"),
  /** Tasks whose success lies between these bounds, or on them, are always taken; so are new ones. */
  low: z.number().min(0).max(1).default(0.1),
  high: z.number().min(0).max(1).default(0.9),
  /** The latest visits of a task whose success counts. */
  window: z.number().int().min(1).max(100).default(1),
  /** The chance of each other task to be taken. */
  chance: z.number().min(0).max(1).default(0.1),
});

export type CurriculumConfig = z.output<typeof curriculumSchema>;

/** How a task went in one step. */
export interface TaskVisit {
  readonly taskId: string;
  /** Share of its rollouts that passed, of those that count; undefined = none counts. */
  readonly success: number | undefined;
}

/** Share of a task's rollouts that passed, of those that have a reward; undefined where none has. */
export function successOf(
  rollouts: readonly Rollout[],
  rules: OutcomeRules,
  { passReward }: Pick<PassRule, "passReward">,
): number | undefined {
  const rewards = rollouts.map((rollout) => rewardOf(rollout, rules));
  const counted = rewards.filter((reward) => reward !== undefined).length;
  if (counted === 0) return undefined;
  return rollouts.filter((rollout, i) => isPassed(rollout, rewards[i], passReward)).length / counted;
}

/** What is known of tasks: the success of their latest visits. */
export class TaskHistory {
  readonly #config: CurriculumConfig;
  readonly #seed: number;
  readonly #visits = new Map<string, number[]>();

  constructor(config: CurriculumConfig, runSeed: number) {
    this.#config = config;
    this.#seed = deriveSeed(runSeed, "curriculum");
  }

  /** Visits in the order of their steps. */
  record(visits: readonly TaskVisit[]): void {
    for (const { taskId, success } of visits) {
      if (success === undefined) continue;
      const known = this.#visits.get(taskId) ?? [];
      this.#visits.set(taskId, [...known, success].slice(-this.#config.window));
    }
  }

  /** Whether the task that stands at a position of the training split's order is taken. */
  isTaken(taskId: string, position: number): boolean {
    const known = this.#visits.get(taskId);
    if (known === undefined) return true; // U1
    const mean = known.reduce((sum, success) => sum + success, 0) / known.length;
    const { low, high, chance } = this.#config;
    if (mean >= low && mean <= high) return true;
    return new Random(deriveSeed(this.#seed, position)).next() < chance; // U2, U3
  }
}
