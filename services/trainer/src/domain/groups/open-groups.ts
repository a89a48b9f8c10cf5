/**
 * The groups of an asynchronous run (`trainer.maxStaleness: n` above 0) that are being played or wait to be trained.
 *
 * A1, capacity: before step k waits, as many groups are asked for as are missing from those that it trains and those that are played
 *     ahead, of one to n steps (groups-ahead.ts), or from what the remaining steps will train, whichever is less. So while a step
 *     trains, rollouts of the next steps are played.
 * A2, order: step k trains the groups that are complete first in the order of the stored stream.
 * A3, age: step k makes version k from version k - 1, and none of its tokens may be older than version k - 1 - n. agent-rollout
 *     ends a rollout that grows older. Its group is given up, and its task is asked for again before new tasks.
 * A4, what is stored: the groups that are asked for, and those that are given up, before any job of them is published; the
 *     groups that a step took, and the order in which they were complete, with the step's commit. The next owner of the run
 *     reads all of it, and the stream from the first rollout that is still needed, so it takes the same groups.
 * A5, when it is decided: whether a group is too old is looked at once a step is decided, and only at what the stream held up to the
 *     rollout that decided it. So the next owner, who may already have read more, gives up the same groups at the same step.
 *
 * Example with n = 1 and two groups a step. At version 0 there is room for four groups: a, b, c and d are asked for. b and d are
 * complete first, and step 1 trains them. At version 1 two places are free, so e and f are asked for; c and e are complete first
 * and step 2 trains them: c has tokens of version 0, which step 2 may train, as 0 = 2 - 1 - n. At version 2 agent-rollout ends a,
 * whose first tokens are of version 0. Three places are free now: the task of a is asked for again, then g and h.
 */

import { groupKey, type Slot, Split } from "@hone/core";
import type { Task } from "../rollouts/jobs.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { CompleteGroup, KeptGroups, TakenGroup } from "../step/ledger.ts";

/** A group that was asked for; its slots are `train.<step>.<task>.<index>`. */
export interface OpenGroup extends TakenGroup {
  /** Position of its task in the order of the training split. */
  readonly cursor: number;
  readonly content: Task;
}

/** A group without its task, which dataset gives again by its position. */
export interface GroupPlace extends Omit<OpenGroup, "content"> {
  readonly content?: undefined;
}

export class OpenGroups {
  readonly #config: RunRecord["config"];
  readonly #open: Map<string, OpenGroup | GroupPlace>;
  /** The steps that trained groups whose rollouts a replay needs. */
  readonly #trained: ReadonlyMap<string, number>;
  #nextCursor: number;
  #decidedAt: number;
  /** How many groups a step has asked for. */
  #asked: { step: number; count: number } = { step: 0, count: 0 };

  constructor({ config }: Pick<RunRecord, "config">, { groups, nextCursor, decidedAt }: KeptGroups) {
    this.#config = config;
    this.#nextCursor = nextCursor;
    this.#decidedAt = decidedAt;
    const trained = new Map<string, number>();
    this.#open = new Map();
    for (const { trainedBy, isGivenUp, ...group } of groups) {
      if (trainedBy !== undefined) trained.set(keyOf(group), trainedBy);
      else if (!isGivenUp) this.#open.set(keyOf(group), group);
      this.#count(group);
    }
    this.#trained = trained;
  }

  /** Position in the training split from which tasks have not been asked for yet. */
  get nextCursor(): number {
    return this.#nextCursor;
  }

  /** Position in the stream of the rollout that decided what the last step takes, or that a step cannot go on (A5). */
  get decidedAt(): number {
    return this.#decidedAt;
  }

  set decidedAt(position: number) {
    this.#decidedAt = Math.max(this.#decidedAt, position);
  }

  /** Number of open groups. */
  get size(): number {
    return this.#open.size;
  }

  /** The open groups whose tasks are known, in the order in which they were asked for. */
  get known(): OpenGroup[] {
    return [...this.#open.values()].filter((group) => group.content !== undefined);
  }

  /** The others: an earlier owner of the run asked for them. */
  get unknown(): GroupPlace[] {
    return [...this.#open.values()].filter((group) => group.content === undefined);
  }

  /** @returns whether training needs no rollout of this group any more. @param trained the version of the engine's weights. */
  isSettled(slot: Slot, trained: number): boolean {
    const key = groupKey(slot);
    if (this.#open.has(key)) return false;
    // Any group that is neither open nor waits for a replay was trained or given up.
    return (this.#trained.get(key) ?? 0) <= trained;
  }

  /** @returns whether a step up to `version` trained this group, and a replay may need it. */
  wasTrained(slot: Slot, version: number): boolean {
    const step = this.#trained.get(groupKey(slot));
    return step !== undefined && step <= version;
  }

  /** @returns how many groups are missing from the capacity before a step (A1). @param ahead groups beyond those of the step. */
  room(step: number, ahead: number): number {
    const { rollout, trainer } = this.#config;
    const left = (trainer.steps - step + 1) * rollout.tasksPerStep;
    return Math.max(0, Math.min(rollout.tasksPerStep + ahead, left) - this.#open.size);
  }

  /** @returns the index of the next group that a step asks for. */
  nextTask(step: number): number {
    return this.#asked.step === step ? this.#asked.count : 0;
  }

  /** Adds the contents of groups that an earlier owner asked for. */
  know(groups: readonly OpenGroup[]): void {
    for (const group of groups) this.#open.set(keyOf(group), group);
  }

  /** Replaces groups that are given up, once that is stored (A4). */
  replace(givenUp: readonly TakenGroup[], asked: readonly OpenGroup[], nextCursor: number): void {
    for (const group of givenUp) this.#open.delete(keyOf(group));
    for (const group of asked) {
      this.#open.set(keyOf(group), group);
      this.#count(group);
    }
    this.#nextCursor = nextCursor;
  }

  /** @returns an open group whose task is known. */
  at(slot: Slot): OpenGroup {
    const group = this.#open.get(groupKey(slot));
    if (group?.content === undefined) throw new TypeError(`${groupKey(slot)} is not open`);
    return group;
  }

  /** Removes the groups that a committed step took. */
  take(groups: readonly CompleteGroup[]): void {
    for (const group of groups) {
      this.#open.delete(keyOf(group));
      this.decidedAt = group.completeAt;
    }
  }

  #count({ step, task }: TakenGroup): void {
    if (step > this.#asked.step) this.#asked = { step, count: 0 };
    if (step === this.#asked.step) this.#asked.count = Math.max(this.#asked.count, task + 1);
  }
}

function keyOf({ step, task }: TakenGroup): string {
  return groupKey({ split: Split.train, step, task });
}
