/** Tasks of the splits, asked for in the run's own terms. */

import type { FileSource, RunConfig } from "@hone/config";
import { deriveSeed } from "@hone/core";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import { type ChosenTasks, Curriculum } from "./curriculum.ts";
import type { Task, TaskSource } from "./jobs.ts";

/** The tasks of a batch, and where each stands in the split's order. */
export interface TaskBatch {
  readonly cursors: readonly number[];
  readonly tasks: readonly Task[];
}

/** Tasks of a step, with what only a curriculum says of them. */
export type StepTasks = TaskBatch & Partial<Pick<ChosenTasks, "nextCursor" | "numPassedOver">>;

/** Few enough that tokenizing them does not hold up a lease. */
const ROWS_AT_ONCE = 200;

export class SplitTasks {
  /** Undefined where every task comes as often as every other. */
  readonly curriculum: Curriculum | undefined;
  readonly #config: RunConfig;
  readonly #source: TaskSource;
  readonly #reporter: RunReporter;

  constructor(config: RunConfig, source: TaskSource, reporter: RunReporter) {
    this.#config = config;
    this.#source = source;
    this.#reporter = reporter;
    const { curriculum } = config.dataset;
    this.curriculum = curriculum === undefined ? undefined : new Curriculum(curriculum, config.seed);
  }

  /**
   * Tasks of a step, from 1: consecutive ones of the shuffled training split, or those that the curriculum takes of it, which
   * has taken note of every step before.
   */
  async step(step: number): Promise<StepTasks> {
    const { tasksPerStep } = this.#config.rollout;
    if (this.curriculum !== undefined) {
      return this.curriculum.choose(tasksPerStep, async (cursor, count) => {
        const { tasks } = await this.#training(this.#config.seed, cursor, count);
        return tasks;
      });
    }
    return this.#training(this.#config.seed, (step - 1) * tasksPerStep, tasksPerStep);
  }

  /** Tasks of the warm start: the training split under an order of its own. */
  async warmStart(count: number): Promise<TaskBatch> {
    return this.#training(deriveSeed(this.#config.seed, "warm-start"), 0, count);
  }

  /** The first `limit` tasks of the evaluation split in its own order; all of them without a limit. */
  async evaluation(limit?: number): Promise<TaskBatch> {
    const source = this.#config.dataset.eval;
    if (source === undefined) return batchFrom(0, []);
    const ask = (count: number) => this.#ask(source, this.#config.seed, 0, count, false);
    const { size, tasks } = await ask(1);
    const count = Math.min(size, limit ?? size);
    return batchFrom(0, count === 1 ? tasks : (await ask(count)).tasks);
  }

  /** Every row of a source in its own order, a stretch at a time. */
  async *rows(source: FileSource): AsyncGenerator<{ rows: readonly Task[]; total: number }> {
    const ask = (cursor: number, count: number) => this.#ask(source, this.#config.seed, cursor, count, false);
    const { size } = await ask(0, 1);
    for (let cursor = 0; cursor < size; cursor += ROWS_AT_ONCE) {
      const { tasks } = await ask(cursor, Math.min(ROWS_AT_ONCE, size - cursor));
      yield { rows: tasks, total: size };
    }
  }

  async #training(seed: number, cursor: number, count: number): Promise<TaskBatch> {
    const { tasks } = await this.#ask(this.#config.dataset.train, seed, cursor, count, true);
    return batchFrom(cursor, tasks);
  }

  #ask(source: unknown, runSeed: number, cursor: number, count: number, isShuffled: boolean) {
    const request = { sourceJson: JSON.stringify(source), runSeed, cursor, count, isShuffled };
    return this.#reporter.untilAvailable({ text: "tasks from dataset", owner: WaitOwner.dataset }, (signal) =>
      this.#source.batch(request, signal),
    );
  }
}

/** Consecutive tasks. */
function batchFrom(cursor: number, tasks: readonly Task[]): TaskBatch {
  return { cursors: tasks.map((_, i) => cursor + i), tasks };
}
