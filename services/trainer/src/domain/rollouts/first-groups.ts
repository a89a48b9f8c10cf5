/**
 * Chooses the groups and rollouts that finish first, where a step starts more of them than it trains.
 *
 * F1: The order of the stream decides. It is stored, so an owner of the run that reads it again chooses the same rollouts.
 * F2: A group is complete when enough of its rollouts can be scored. If all have arrived and too few can be, others fill it up, so
 *     that every wait ends.
 */

import { isScorable, type Slot } from "@hone/core";
import type { ScoredRollout } from "./scored-rollout.ts";

/** How many groups are wanted, and how many rollouts of each. */
export interface WantedGroups {
  readonly groups: number;
  readonly rollouts: number;
}

/** The rollouts of a group that have arrived, in this order. */
interface OpenGroup {
  missing: number;
  readonly scorable: ScoredRollout[];
  readonly others: ScoredRollout[];
}

export class FirstGroups {
  readonly #wanted: WantedGroups;
  readonly #open = new Map<number, OpenGroup>();
  readonly #complete: (readonly ScoredRollout[])[] = [];

  /** @param slots those of all rollouts that were started; each group has at least as many as are wanted of it. */
  constructor(slots: readonly Slot[], wanted: WantedGroups) {
    this.#wanted = wanted;
    for (const { task } of slots) {
      const group = this.#open.get(task) ?? { missing: 0, scorable: [], others: [] };
      group.missing++;
      this.#open.set(task, group);
    }
  }

  /** Whether enough groups are complete. */
  get isDone(): boolean {
    return this.#complete.length >= this.#wanted.groups;
  }

  /** Takes the next rollout of the stream; changes nothing if the choice is made. */
  offer(rollout: ScoredRollout): void {
    const { task } = rollout.slot;
    const group = this.#open.get(task);
    if (group === undefined || this.isDone) return;
    group.missing--;
    (isScorable(rollout.outcome) ? group.scorable : group.others).push(rollout);
    if (group.scorable.length < this.#wanted.rollouts && group.missing > 0) return;
    this.#open.delete(task);
    this.#complete.push([...group.scorable, ...group.others].slice(0, this.#wanted.rollouts)); // F2
  }

  /** @returns the chosen rollouts, in the order of their slots. */
  get chosen(): ScoredRollout[] {
    return this.#complete.flat().sort(({ slot: a }, { slot: b }) => a.task - b.task || a.index - b.index);
  }
}
