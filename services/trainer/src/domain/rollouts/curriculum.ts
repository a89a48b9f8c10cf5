/**
 * The training tasks of a run with a curriculum: chosen by how their earlier visits went.
 *
 * C1: a choice is a function of the run's seed and of the visits of committed steps: those are stored with the commit and
 *     read again by the next owner, so a step that is begun anew has the same tasks.
 * C2: a step looks at a bounded stretch of the order. Where too few of its tasks are taken, the first of the others fill it up.
 */

import { type CurriculumConfig, TaskHistory } from "@hone/rl";
import type { TaskVisitRow } from "../step/ledger.ts";
import type { Task } from "./jobs.ts";

/** Of the order, in lengths of a step's batch (C2). */
const MAX_LOOK = 16;

/** The tasks of a step. */
export interface ChosenTasks {
  readonly tasks: readonly Task[];
  /** Position of each in the order. */
  readonly cursors: readonly number[];
  /** Where the next step begins to look. */
  readonly nextCursor: number;
  /** Positions that were looked at and not taken. */
  readonly numPassedOver: number;
}

export class Curriculum {
  readonly #history: TaskHistory;
  #cursor = 0;

  constructor(config: CurriculumConfig, runSeed: number) {
    this.#history = new TaskHistory(config, runSeed);
  }

  /** Takes note of committed steps, in their order (C1). */
  record(visits: readonly TaskVisitRow[]): void {
    this.#history.record(visits);
    this.#cursor = visits.at(-1)?.nextCursor ?? this.#cursor;
  }

  /** @param ask the tasks at consecutive positions of the training split's order. */
  async choose(
    count: number,
    ask: (cursor: number, count: number) => Promise<readonly Task[]>,
  ): Promise<ChosenTasks> {
    const taken: { task: Task; cursor: number }[] = [];
    const others: { task: Task; cursor: number }[] = [];
    const end = this.#cursor + count * MAX_LOOK;
    let cursor = this.#cursor;
    while (taken.length < count && cursor < end) {
      for (const task of await ask(cursor, count)) {
        const entry = { task, cursor: cursor++ };
        (this.#history.isTaken(task.id, entry.cursor) ? taken : others).push(entry);
        if (taken.length === count) break;
      }
    }
    const chosen = [...taken, ...others.slice(0, count - taken.length)]; // C2
    return {
      tasks: chosen.map(({ task }) => task),
      cursors: chosen.map((entry) => entry.cursor),
      nextCursor: cursor,
      numPassedOver: cursor - this.#cursor - chosen.length,
    };
  }
}
