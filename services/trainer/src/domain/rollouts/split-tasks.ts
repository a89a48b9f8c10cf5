/** Gets the tasks of a run's splits from the dataset service: for a step, the warm start or an evaluation. */

import { curriculaOf, type FileSource, type RunConfig } from "@hone/config";
import { deriveSeed } from "@hone/core";
import type { UserCurriculum } from "@hone/rl";
import { linkTo } from "@hone/telemetry";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { TaskVisitRow } from "../step/ledger.ts";
import { type ChosenTasks, Curriculum } from "./curriculum.ts";
import type { Task, TaskSource } from "./jobs.ts";

/** The tasks of a batch, and the position of each in the split's order. */
export interface TaskBatch {
  readonly cursors: readonly number[];
  readonly tasks: readonly Task[];
}

/** Few enough rows that the trainer renews its lease on the run in time, although tokenizing them blocks the process. */
const ROWS_AT_ONCE = 200;

export class SplitTasks {
  /**
   * Whether the tasks of a step depend on the results of earlier steps. Then the visits of each step are committed with it, and
   * recorded here before the next one.
   */
  readonly dependsOnVisits: boolean;
  readonly #config: RunConfig;
  readonly #source: TaskSource;
  readonly #reporter: RunReporter;
  /** Undefined if the run has no curriculum; then every task comes equally often. */
  readonly #curriculum: Curriculum | undefined;
  /** The position that follows the last task of the recorded visits. */
  #cursor = 0;

  /** @param ownCurricula functions of the user's modules, by the names of the parts. */
  constructor(
    config: RunConfig,
    source: TaskSource,
    reporter: RunReporter,
    ownCurricula?: ReadonlyMap<string, UserCurriculum>,
  ) {
    this.#config = config;
    this.#source = source;
    this.#reporter = reporter;
    const curricula = curriculaOf(config);
    this.#curriculum =
      curricula.length === 0 ? undefined : new Curriculum(curricula, config.seed, ownCurricula);
    this.dependsOnVisits = curricula.length > 0 || config.algorithm.dynamicSampling !== undefined;
  }

  /** Records the visits of committed steps, in the order of the steps. */
  record(visits: readonly TaskVisitRow[]): void {
    this.#curriculum?.record(visits);
    this.#cursor = visits.at(-1)?.nextCursor ?? this.#cursor;
  }

  /**
   * @param step counts from 1. If its tasks depend on visits, those of every earlier step must have been recorded.
   * @returns the first tasks of a step.
   */
  async step(step: number): Promise<ChosenTasks> {
    const { tasksPerStep, redundancy } = this.#config.rollout;
    const count = tasksPerStep + (redundancy?.tasks ?? 0);
    return this.next(this.dependsOnVisits ? this.#cursor : (step - 1) * count, count);
  }

  /** @returns `count` tasks of the shuffled training split from a position: consecutive ones, or those that the curriculum chooses. */
  async next(cursor: number, count: number): Promise<ChosenTasks> {
    const { seed } = this.#config;
    if (this.#curriculum !== undefined) {
      return this.#curriculum.choose(cursor, count, async (from, each) => {
        const { tasks } = await this.#training(seed, from, each);
        return tasks;
      });
    }
    const batch = await this.#training(seed, cursor, count);
    return { ...batch, nextCursor: cursor + count, numPassedOver: 0 };
  }

  /** @returns the tasks at positions of the shuffled training split. */
  async at(cursors: readonly number[]): Promise<Task[]> {
    const found = new Map<number, Task>();
    const sorted = [...new Set(cursors)].sort((a, b) => a - b);
    for (let begin = 0; begin < sorted.length; ) {
      let end = begin + 1;
      while (end < sorted.length && sorted[end] === sorted[end - 1]! + 1) end++;
      const first = sorted[begin]!;
      const { tasks } = await this.#training(this.#config.seed, first, end - begin);
      tasks.forEach((task, i) => void found.set(first + i, task));
      begin = end;
    }
    return cursors.map((cursor) => found.get(cursor)!);
  }

  /** @returns the tasks of the warm start: the training split, shuffled in an order used only for the warm start. */
  async warmStart(count: number): Promise<TaskBatch> {
    return this.#training(deriveSeed(this.#config.seed, "warm-start"), 0, count);
  }

  /** @returns rows that the updates of a step imitate: consecutive ones of a source in an order used only for that. */
  async supervised(source: FileSource, cursor: number, count: number): Promise<readonly Task[]> {
    const seed = deriveSeed(this.#config.seed, "supervised");
    const { tasks } = await this.#ask(source, seed, cursor, count, true);
    return tasks;
  }

  /** @returns the first `limit` tasks of the evaluation split, in the order of its source; without a limit, all of them. */
  async evaluation(limit?: number): Promise<TaskBatch> {
    const source = this.#config.dataset.eval;
    if (source === undefined) return batchFrom(0, []);
    const ask = (count: number) => this.#ask(source, this.#config.seed, 0, count, false);
    const { size, tasks } = await ask(1);
    const count = Math.min(size, limit ?? size);
    return batchFrom(0, count === 1 ? tasks : (await ask(count)).tasks);
  }

  /** Yields every row of a source, in the order of the source, a batch of rows at a time. */
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

  async #ask(source: unknown, runSeed: number, cursor: number, count: number, isShuffled: boolean) {
    const request = { sourceJson: JSON.stringify(source), runSeed, cursor, count, isShuffled };
    const { tasks, size } = await this.#reporter.untilAvailable(
      { text: "tasks from dataset", owner: WaitOwner.dataset },
      (signal) => this.#source.batch(request, signal),
    );
    const askedIn = linkTo();
    return { tasks: askedIn === undefined ? tasks : tasks.map((task) => ({ ...task, askedIn })), size };
  }
}

/** @returns the batch of consecutive tasks that starts at position `cursor`. */
function batchFrom(cursor: number, tasks: readonly Task[]): TaskBatch {
  return { cursors: tasks.map((_, i) => cursor + i), tasks };
}
