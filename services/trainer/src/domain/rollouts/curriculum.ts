/**
 * Chooses the training tasks of a run that has a curriculum, by the results of earlier visits to each task.
 *
 * C1: A choice depends only on the run's seed and on the visits of committed steps. Visits are stored with each commit and
 *     read again by the next trainer that owns the run, so a step that is started again gets the same tasks.
 * C2: A step considers a bounded number of consecutive tasks. If the curriculum accepts too few of them, the first ones that
 *     it rejected complete the step.
 */

import type { PartCurriculum } from "@hone/config";
import { TaskHistory, type UserCurriculum } from "@hone/rl";
import type { TaskVisitRow } from "../step/ledger.ts";
import type { Task } from "./jobs.ts";

/** A step considers at most this many times the number of tasks that it needs (C2). */
const MAX_LOOK = 16;

/** The tasks chosen for a batch. */
export interface ChosenTasks {
  readonly tasks: readonly Task[];
  /** Position of each task in the order of the training split. */
  readonly cursors: readonly number[];
  /** Position from which the next batch is chosen. */
  readonly nextCursor: number;
  /** Number of tasks that were considered and not chosen. */
  readonly numPassedOver: number;
}

export class Curriculum {
  readonly #histories: ReadonlyMap<string, TaskHistory>;

  /**
   * @param parts the curricula of parts of the training split; a part without one takes all of its tasks.
   * @param own functions of the user's modules, by the names of the parts.
   */
  constructor(
    parts: readonly Pick<PartCurriculum, "part" | "curriculum">[],
    runSeed: number,
    own: ReadonlyMap<string, UserCurriculum> = new Map(),
  ) {
    this.#histories = new Map(
      parts.map(({ part, curriculum }) => [part, new TaskHistory(curriculum, runSeed, own.get(part))]),
    );
  }

  /** Records the visits of committed steps, in the order of the steps (C1). */
  record(visits: readonly TaskVisitRow[]): void {
    // A history asks for its own tasks only, so that of the others may be in it as well.
    for (const history of this.#histories.values()) history.record(visits);
  }

  #isTaken({ id, part }: Task, position: number): boolean {
    return this.#histories.get(part)?.isTaken(id, position) ?? true;
  }

  /**
   * @param from position in the training split's order of the first task to consider.
   * @param ask returns `count` tasks at consecutive positions, from `cursor`.
   */
  async choose(
    from: number,
    count: number,
    ask: (cursor: number, count: number) => Promise<readonly Task[]>,
  ): Promise<ChosenTasks> {
    const taken: { task: Task; cursor: number }[] = [];
    const others: { task: Task; cursor: number }[] = [];
    const end = from + count * MAX_LOOK;
    let cursor = from;
    while (taken.length < count && cursor < end) {
      for (const task of await ask(cursor, count)) {
        const entry = { task, cursor: cursor++ };
        (this.#isTaken(task, entry.cursor) ? taken : others).push(entry);
        if (taken.length === count) break;
      }
    }
    const chosen = [...taken, ...others.slice(0, count - taken.length)]; // C2
    return {
      tasks: chosen.map(({ task }) => task),
      cursors: chosen.map((entry) => entry.cursor),
      nextCursor: cursor,
      numPassedOver: cursor - from - chosen.length,
    };
  }
}
