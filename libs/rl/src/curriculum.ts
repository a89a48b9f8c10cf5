/**
 * A curriculum by past success: which tasks are taken as training goes round its dataset.
 *
 * U1: a task that was never trained is taken: nothing is known of it.
 * U2: one whose recent success lies within the bounds is taken; of the others each with a chance, as they may have become
 *     easier, or been forgotten.
 * U3: the draw is a function of the seed and the position: the same history makes the same choice.
 * U4: a module of the user decides in place of U1 and U2, by the same history and draw:
 *
 *         export const takesTask = ({ successes, draw }, { share }) => successes.at(-1) !== 1 || draw < share;
 */

import { deriveSeed, describeError, Random, TerminalError } from "@hone/core";
import { z } from "zod";
import type { OutcomeRules } from "./algorithm/schema.ts";
import type { PassRule } from "./metrics/evaluation-metrics.ts";
import { isPassed } from "./metrics/evaluation-metrics.ts";
import { rewardOf } from "./rewards.ts";
import type { Rollout } from "./rollout.ts";

const bySuccess = z.strictObject({
  kind: z.literal("success"),
  /** Tasks whose success lies between these bounds, or on them, are always taken; so are new ones. */
  low: z.number().min(0).max(1).default(0.1),
  high: z.number().min(0).max(1).default(0.9),
  /** The latest visits of a task whose success counts. */
  window: z.number().int().min(1).max(100).default(1),
  /** The chance of each other task to be taken. */
  chance: z.number().min(0).max(1).default(0.1),
});

const byModule = z.strictObject({
  kind: z.literal("module"),
  /** The module's file. */
  path: z.string().min(1).max(1_024),
  /** What the function gets as its second argument. */
  options: z.record(z.string(), z.unknown()).default({}),
  /** The latest visits of a task that the function is told. */
  window: z.number().int().min(1).max(100).default(100),
});

/** `dataset.curriculum` of a run file: which tasks are taken as training goes round its dataset, by how they went before. */
export const curriculumSchema = z.discriminatedUnion("kind", [bySuccess, byModule]);

export type CurriculumConfig = z.output<typeof curriculumSchema>;

/** A task that a user's curriculum is asked about. */
export interface CandidateTask {
  /** Its name, such as `frozen_lake:812`; that of a named part of a mix begins with the part's name and a slash. */
  readonly id: string;
  /** The success of its latest visits in [0, 1], the latest last; empty = never trained. */
  readonly successes: readonly number[];
  /** Its position in the order of the training split. */
  readonly position: number;
  /** From [0, 1), uniform, the same each time that the same position is asked about (U3). */
  readonly draw: number;
}

/** The function that a user's module exports (U4). It must be pure: a step that is started again asks again. */
export type UserCurriculum = (task: CandidateTask, options: Readonly<Record<string, unknown>>) => unknown;

/** The name under which a module exports it. */
export const USER_CURRICULUM_EXPORT = "takesTask";

/** A user's curriculum failed, or did not say yes or no. */
export class UserCurriculumError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("USER_CURRICULUM", message, options);
  }
}

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
  readonly #own: UserCurriculum | undefined;
  readonly #visits = new Map<string, number[]>();

  /** @param own the function of the user's module, for a curriculum of the kind `module`. */
  constructor(config: CurriculumConfig, runSeed: number, own?: UserCurriculum) {
    this.#config = config;
    this.#own = own;
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

  /**
   * Whether the task that stands at a position of the training split's order is taken.
   * @throws {UserCurriculumError} when the user's function throws, or returns anything but true or false.
   */
  isTaken(taskId: string, position: number): boolean {
    const known = this.#visits.get(taskId);
    const config = this.#config;
    if (config.kind === "module") {
      const task = { id: taskId, successes: known ?? [], position, draw: this.#draw(position) };
      return callUserCurriculum(this.#own, task, config);
    }
    if (known === undefined) return true; // U1
    const mean = known.reduce((sum, success) => sum + success, 0) / known.length;
    const { low, high, chance } = config;
    return (mean >= low && mean <= high) || this.#draw(position) < chance; // U2
  }

  /** U3 */
  #draw(position: number): number {
    return new Random(deriveSeed(this.#seed, position)).next();
  }
}

/** U4 */
function callUserCurriculum(
  own: UserCurriculum | undefined,
  task: CandidateTask,
  { path, options }: Extract<CurriculumConfig, { kind: "module" }>,
): boolean {
  if (own === undefined)
    throw new TypeError(`the curriculum ${path} was asked without the function of its module`);
  let answer: unknown;
  try {
    answer = own(task, options);
  } catch (cause) {
    throw new UserCurriculumError(`${path} failed for the task ${task.id}: ${describeError(cause)}`, {
      cause,
    });
  }
  if (typeof answer === "boolean") return answer;
  throw new UserCurriculumError(
    `${path} returned ${String(answer)} for the task ${task.id}; it must return true or false`,
  );
}
