/**
 * Chooses the groups and rollouts that finish first, where more of them are being played than a step trains.
 *
 * F1: The order of the stream decides. It is stored, so an owner of the run that reads it again chooses the same rollouts.
 * F2: A group is complete when enough of its rollouts can be scored. If all have arrived and too few can be, others fill it up, so
 *     that every wait ends.
 * F3: A group with a rollout that the step must not train any more, because it is too old, is not chosen. The choice also ends when
 *     too few other groups are left.
 */

import { compareSlots, groupKey, isScorable, type Slot } from "@hone/core";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";

/** How many groups are wanted, and how many rollouts of each. */
export interface WantedGroups {
  readonly groups: number;
  readonly rollouts: number;
  /** Whether a rollout excludes its group (F3). @default none does */
  readonly isTooOld?: (rollout: ScoredRollout) => boolean;
  /** Whether the other groups are kept for later steps. @default false: nothing waits for them any more */
  readonly keepsOthers?: boolean;
}

/** The rollouts of a group that have arrived, in this order. */
interface OpenGroup {
  missing: number;
  readonly scorable: ScoredRollout[];
  readonly others: ScoredRollout[];
}

export class FirstGroups {
  readonly #wanted: WantedGroups;
  readonly #open = new Map<string, OpenGroup>();
  readonly #complete: (readonly ScoredRollout[])[] = [];

  /** @param slots those of all rollouts that were started; each group has at least as many as are wanted of it. */
  constructor(slots: readonly Slot[], wanted: WantedGroups) {
    this.#wanted = wanted;
    for (const slot of slots) {
      const key = groupKey(slot);
      const group = this.#open.get(key) ?? { missing: 0, scorable: [], others: [] };
      group.missing++;
      this.#open.set(key, group);
    }
  }

  /** Whether the groups that are not chosen are kept for later steps. */
  get keepsOthers(): boolean {
    return this.#wanted.keepsOthers === true;
  }

  /** Whether enough groups are complete, or too few can still become complete. */
  get isDone(): boolean {
    const { groups } = this.#wanted;
    return this.#complete.length >= groups || this.#complete.length + this.#open.size < groups;
  }

  /** Takes the next rollout of the stream; changes nothing if the choice is made. */
  offer(rollout: ScoredRollout): void {
    const key = groupKey(rollout.slot);
    const group = this.#open.get(key);
    if (group === undefined || this.isDone) return;
    if (this.#wanted.isTooOld?.(rollout) === true) {
      this.#open.delete(key); // F3
      return;
    }
    group.missing--;
    (isScorable(rollout.outcome) ? group.scorable : group.others).push(rollout);
    if (group.scorable.length < this.#wanted.rollouts && group.missing > 0) return;
    this.#open.delete(key);
    this.#complete.push([...group.scorable, ...group.others].slice(0, this.#wanted.rollouts)); // F2
  }

  /** @returns the chosen rollouts, in the order of their slots. */
  get chosen(): ScoredRollout[] {
    return this.#complete.flat().sort((a, b) => compareSlots(a.slot, b.slot));
  }
}
