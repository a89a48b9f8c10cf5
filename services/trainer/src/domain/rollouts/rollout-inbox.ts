/**
 * Where scored rollouts of one run wait until the step, evaluation or warm start that asked for them takes them.
 *
 * I1: the first scored episode of a rollout wins; later ones change nothing.
 * I2: a rollout that no collection can need any more is dropped, so the inbox holds at most what is in flight.
 * I3: what `collect` returns follows the order of the slots asked for, never the order of arrival.
 * I4: every wait ends: when the last slot arrives (the stream's reader unblocks it) or when the signal aborts.
 * I5: of a run that was resumed after a failure, what was made before does not count where it was not trained; of what
 *     was, the episode of the latest resumption counts.
 */

import { raceAbortable, type Slot, slotKey } from "@hone/core";
import type { ScoredRollout } from "./scored-rollout.ts";

/** A collection that is being waited for. */
interface Waiting {
  readonly missing: Set<string>;
  readonly onArrival: () => void;
  readonly done: () => void;
}

export class RolloutInbox {
  readonly #isObsolete: (slot: Slot) => boolean;
  readonly #counts: (scored: ScoredRollout) => boolean;
  readonly #arrived = new Map<string, ScoredRollout>();
  readonly #waiting = new Set<Waiting>();
  #lastSequence: number;

  /**
   * @param isObsolete whether a slot was dealt with already, by a commit or a recorded evaluation.
   * @param fromSequence first position of the stream that will be read.
   * @param counts whether an episode was made for the run as it is now (I5).
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

  /** Position of the stream behind the last message seen. */
  get nextSequence(): number {
    return this.#lastSequence + 1;
  }

  /**
   * First position of the stream that is still needed once what was collected is committed: that of the first rollout that
   * waits here, such as one of the step after those that a restart replays, or else the one behind the last message seen.
   */
  get neededFrom(): number {
    let first = this.nextSequence;
    for (const { sequence } of this.#arrived.values()) first = Math.min(first, sequence);
    return first;
  }

  get size(): number {
    return this.#arrived.size;
  }

  /** Takes in what the stream brought, in its order; a stream that began again has lower positions. @returns whether it was kept. */
  offer(scored: ScoredRollout): boolean {
    this.#lastSequence = scored.sequence;
    const { slot } = scored;
    const key = slotKey(slot);
    const known = this.#arrived.get(key);
    if (known !== undefined && known.resumption >= scored.resumption) return false; // I1, I5
    if (this.#isObsolete(slot) || !this.#counts(scored)) return false; // I2, I5
    this.#arrived.set(key, scored);
    for (const waiting of this.#waiting) {
      if (!waiting.missing.delete(key)) continue;
      waiting.onArrival();
      if (waiting.missing.size === 0) waiting.done();
    }
    return true;
  }

  /** Drops what became obsolete since it arrived (I2). */
  prune(): void {
    for (const [key, { slot }] of this.#arrived) {
      if (this.#isObsolete(slot)) this.#arrived.delete(key);
    }
  }

  /** Which of `slots` have not arrived, in their order. */
  missing<S extends Slot>(slots: readonly S[]): S[] {
    return slots.filter((slot) => !this.#arrived.has(slotKey(slot)));
  }

  /**
   * Waits until every slot has arrived and takes the rollouts out (I3, I4).
   * @param onProgress told how many of them are here, at once and at each arrival.
   */
  async collect(
    slots: readonly Slot[],
    onProgress: (arrivedCount: number) => void,
    signal: AbortSignal,
  ): Promise<ScoredRollout[]> {
    const missing = new Set(this.missing(slots).map(slotKey));
    const tell = () => onProgress(slots.length - missing.size);
    tell();
    if (missing.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiting: Waiting = { missing, onArrival: tell, done: resolve };
      this.#waiting.add(waiting);
      try {
        await raceAbortable(promise, signal);
      } finally {
        this.#waiting.delete(waiting);
      }
    }
    return slots.map((slot) => {
      const key = slotKey(slot);
      const scored = this.#arrived.get(key)!;
      this.#arrived.delete(key);
      return scored;
    });
  }
}
