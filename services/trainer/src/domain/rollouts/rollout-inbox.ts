/**
 * Keeps the scored rollouts of one run until the step, evaluation or warm start that asked for them collects them.
 *
 * I1: The first scored episode of a rollout counts; later ones change nothing.
 * I2: A rollout that no collection can need any more is dropped, so the inbox holds at most the rollouts in flight.
 * I3: `collect` returns the rollouts in the order of the requested slots, whatever their order of arrival.
 * I4: Every wait ends: when the rollout of the last slot arrives (the reader of the stream delivers it) or when the signal
 *     aborts.
 * I5: If the run was resumed after a failure, rollouts that were made before the resumption count only if a committed step
 *     trained on them; if such a rollout was made more than once, the episode of the latest resumption counts.
 */

import { raceAbortable, type Slot, slotKey } from "@hone/core";
import type { FirstGroups } from "../groups/first-groups.ts";
import type { ScoredRollout } from "./scored-rollout.ts";

/** A collection whose rollouts have not all arrived. */
interface Waiting {
  readonly missing: Set<string>;
  readonly onArrival: (scored: ScoredRollout) => void;
}

export class RolloutInbox {
  readonly #isObsolete: (slot: Slot) => boolean;
  readonly #counts: (scored: ScoredRollout) => boolean;
  readonly #arrived = new Map<string, ScoredRollout>();
  readonly #waiting = new Set<Waiting>();
  #lastSequence: number;

  /**
   * @param isObsolete whether a committed step or a recorded evaluation has already used the slot.
   * @param fromSequence first position of the stream that will be read.
   * @param counts whether an episode counts, given the resumptions of the run (I5).
   */
  constructor(
    isObsolete: (slot: Slot) => boolean,
    fromSequence: number,
    counts: (scored: ScoredRollout) => boolean = () => true,
  ) {
    this.#isObsolete = isObsolete;
    this.#counts = counts;
    this.#lastSequence = fromSequence - 1;
  }

  /** The position in the stream that follows the last message read. */
  get nextSequence(): number {
    return this.#lastSequence + 1;
  }

  /**
   * The first position of the stream that is still needed once everything that was collected is committed: the position of
   * the first rollout in the inbox, or, if the inbox is empty, the position that follows the last message read.
   */
  get neededFrom(): number {
    let first = this.nextSequence;
    for (const { sequence } of this.#arrived.values()) first = Math.min(first, sequence);
    return first;
  }

  get size(): number {
    return this.#arrived.size;
  }

  /**
   * Takes the next rollout of the stream; a stream that was created anew has lower positions.
   * @returns whether the rollout was kept.
   */
  offer(scored: ScoredRollout): boolean {
    this.#lastSequence = scored.sequence;
    const { slot } = scored;
    const key = slotKey(slot);
    const known = this.#arrived.get(key);
    if (known !== undefined && known.resumption >= scored.resumption) return false; // I1, I5
    if (this.#isObsolete(slot) || !this.#counts(scored)) return false; // I2, I5
    this.#arrived.set(key, scored);
    for (const waiting of this.#waiting) {
      if (waiting.missing.delete(key)) waiting.onArrival(scored);
    }
    return true;
  }

  /** Drops the rollouts that have become obsolete since they arrived (I2). */
  prune(): void {
    for (const [key, { slot }] of this.#arrived) {
      if (this.#isObsolete(slot)) this.#arrived.delete(key);
    }
  }

  /** @returns those of `slots` whose rollouts have not arrived, in the same order. */
  missing<S extends Slot>(slots: readonly S[]): S[] {
    return slots.filter((slot) => !this.#arrived.has(slotKey(slot)));
  }

  /** @returns the rollouts of those slots that have arrived. */
  arrived(slots: readonly Slot[]): ScoredRollout[] {
    return slots.flatMap((slot) => this.#arrived.get(slotKey(slot)) ?? []);
  }

  /**
   * Waits until the rollout of every slot has arrived and takes the rollouts out of the inbox (I3, I4).
   * @param onProgress called with the number of rollouts that have arrived, at once and at each arrival.
   */
  async collect(
    slots: readonly Slot[],
    onProgress: (arrivedCount: number) => void,
    signal: AbortSignal,
  ): Promise<ScoredRollout[]> {
    await this.#wait(slots, onProgress, signal);
    return slots.map((slot) => {
      const key = slotKey(slot);
      const scored = this.#arrived.get(key)!;
      this.#arrived.delete(key);
      return scored;
    });
  }

  /**
   * Waits until enough groups are complete, and takes the rollouts of all slots that have arrived out of the inbox (I4), or only
   * those of the chosen groups if the others are kept for later.
   * @param first chooses among the rollouts; it gets them in the order of the stream.
   * @param onProgress called with the number of rollouts that have arrived, at once and at each arrival.
   * @returns the chosen rollouts, in the order of their slots.
   */
  async collectFirst(
    slots: readonly Slot[],
    first: FirstGroups,
    onProgress: (arrivedCount: number) => void,
    signal: AbortSignal,
  ): Promise<ScoredRollout[]> {
    const keys = new Set(slots.map(slotKey));
    for (const [key, scored] of this.#arrived) {
      if (keys.has(key)) first.offer(scored);
    }
    await this.#wait(slots, onProgress, signal, first);
    const { chosen } = first;
    const used = first.keepsOthers ? chosen.map(({ slot }) => slotKey(slot)) : keys;
    for (const key of used) this.#arrived.delete(key);
    return chosen;
  }

  /** Waits until the rollouts of all slots have arrived, or until the choice among them is made (I4). */
  async #wait(
    slots: readonly Slot[],
    onProgress: (arrivedCount: number) => void,
    signal: AbortSignal,
    first?: FirstGroups,
  ): Promise<void> {
    const missing = new Set(this.missing(slots).map(slotKey));
    const isDone = () => missing.size === 0 || first?.isDone === true;
    const tell = () => onProgress(slots.length - missing.size);
    tell();
    if (isDone()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onArrival = (scored: ScoredRollout) => {
      first?.offer(scored);
      tell();
      if (isDone()) resolve();
    };
    const waiting: Waiting = { missing, onArrival };
    this.#waiting.add(waiting);
    try {
      await raceAbortable(promise, signal);
    } finally {
      this.#waiting.delete(waiting);
    }
  }
}
