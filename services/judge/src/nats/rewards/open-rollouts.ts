/**
 * The finished rollouts that wait for rewards. They are kept in the bucket REWARDS and not in a process, so they cost no memory
 * for their tokens, hold back no other work, and outlive every process.
 *
 * O1: a finished episode is acknowledged once its entry is stored (consume-episodes.ts). From then on the entry stands for it.
 * O2: every change is made by compare-and-set on the entry, so of several judges, a reward and the deadline exactly one is first.
 * O3: what a decided entry says is published before the entry goes, with the message id that every episode of the attempt has. So
 *     a death in between repeats the publication, and the stream or the trainer takes the first.
 * O4: the deadline is measured by the clock of the bus, which dated the episode, too; a judge's own clock may be wrong.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { messageIdOf, rolloutIdOf, type Slot } from "@hone/core";
import {
  type Bucket,
  type BucketEntry,
  BucketName,
  type Bus,
  givenRewardKey,
  OPEN_REWARDS,
  openBucket,
  openRewardKey,
  publishStored,
  RevisionConflictError,
  rewardedRunKey,
  subjects,
} from "@hone/messaging";
import { type RolloutRewards, RolloutRewardsSchema } from "@hone/proto-gen/judge";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import {
  Attr,
  contextOf,
  contextOfTraceparent,
  type Span,
  SpanKind,
  SpanName,
  withSpan,
} from "@hone/telemetry";
import { givenOf, isDecided, rolloutIn, scoredOf, successorOf } from "./rollout-rewards.ts";

/** Tries of one change; each failure means that another writer came in between. */
const MAX_CONFLICTS = 10;
/** An entry has to fit into one message. */
const MAX_ENTRY_SHARE = 0.5;

/** The rewards of a rollout, and whether its episode is scored already. */
export interface FoundRewards {
  readonly entry: BucketEntry<RolloutRewards>;
  readonly isScored: boolean;
}

export class OpenRollouts {
  readonly #bus: Bus;
  readonly #bucket: Bucket<RolloutRewards>;

  private constructor(bus: Bus, bucket: Bucket<RolloutRewards>) {
    this.#bus = bus;
    this.#bucket = bucket;
  }

  static async open(bus: Bus): Promise<OpenRollouts> {
    return new OpenRollouts(bus, await openBucket(bus, BucketName.rewards, RolloutRewardsSchema));
  }

  /** @returns undefined if no rewards were ever awaited for that rollout, or if its run is over. */
  async find(runId: string, slot: Slot): Promise<FoundRewards | undefined> {
    // Twice, as an entry may move from the one key to the other in between.
    for (let look = 0; look < 2; look++) {
      const open = await this.#bucket.get(openRewardKey(runId, slot));
      if (open !== undefined) return { entry: open, isScored: false };
      const given = await this.#bucket.get(givenRewardKey(runId, slot));
      if (given !== undefined) return { entry: given, isScored: true };
    }
    return undefined;
  }

  /** Whether an entry has the size that the bucket takes. */
  hasRoomFor(entry: RolloutRewards): boolean {
    return toBinary(RolloutRewardsSchema, entry).length <= this.#bus.maxPayloadBytes() * MAX_ENTRY_SHARE;
  }

  /** Stores the entry of an episode that has just come, unless there is one that counts (O1). */
  async add(entry: RolloutRewards): Promise<void> {
    const { runId, slot } = rolloutIn(entry);
    for (let conflicts = 0; ; conflicts++) {
      const found = await this.find(runId, slot);
      const next = found === undefined ? entry : successorOf(found.entry.value, entry, found.isScored);
      if (next === undefined) return;
      await this.#bucket.put(rewardedRunKey(runId), create(RolloutRewardsSchema)); // the trainer finds the run by it
      const revision = found === undefined || found.isScored ? 0 : found.entry.revision;
      try {
        await this.#bucket.compareAndSet(openRewardKey(runId, slot), next, revision);
        return;
      } catch (error) {
        if (!(error instanceof RevisionConflictError) || conflicts >= MAX_CONFLICTS) throw error;
      }
    }
  }

  /**
   * Changes an entry that is not scored (O2).
   * @returns the changed entry.
   * @throws {RevisionConflictError} when another writer was first.
   */
  async change(
    { key, value, revision }: BucketEntry<RolloutRewards>,
    changes: Partial<Pick<RolloutRewards, "rewards" | "isExpired">>,
  ): Promise<BucketEntry<RolloutRewards>> {
    const changed = create(RolloutRewardsSchema, { ...value, ...changes });
    return { key, value: changed, revision: await this.#bucket.compareAndSet(key, changed, revision) };
  }

  /** Publishes what a decided entry says, and then removes it (O3). An entry that has changed meanwhile is left alone. */
  async settle({ key, value, revision }: BucketEntry<RolloutRewards>): Promise<void> {
    if (!isDecided(value) || (await this.#bucket.get(key))?.revision !== revision) return;
    const { runId, slot, attempt, resumption, name } = rolloutIn(value);
    const rolloutId = rolloutIdOf(runId, slot);
    const scored = scoredOf(value);
    const parent = contextOfTraceparent(value.traceparent || undefined);
    const attributes = {
      [Attr.runId]: runId,
      [Attr.slot]: name,
      [Attr.rolloutId]: rolloutId,
      [Attr.attempt]: attempt,
    };
    await withSpan(SpanName.judge, { parent, kind: SpanKind.CONSUMER, attributes }, async (span) => {
      describeOn(span, scored);
      await publishStored(this.#bus, subjects.rolloutScored(runId), ScoredEpisodeSchema, scored, {
        messageId: messageIdOf(`${rolloutId}/${attempt}/scored`, resumption),
        trace: contextOf(span, parent),
      });
    });
    await this.#bucket.put(givenRewardKey(runId, slot), givenOf(value));
    try {
      await this.#bucket.delete(key, revision);
    } catch (error) {
      if (!(error instanceof RevisionConflictError)) throw error;
      // If the trainer has dropped the rewards of a run that is over, it must find the run once more, as one was just added.
      if ((await this.#bucket.get(key)) === undefined) await this.#bucket.delete(key);
    }
  }

  /** Yields the open entries, and then every change of one, until the signal aborts. */
  watch(signal: AbortSignal, onError: (error: unknown) => void) {
    return this.#bucket.watch(signal, onError, OPEN_REWARDS);
  }
}

function describeOn(span: Span, { reward, scores }: ScoredEpisode): void {
  if (span.isRecording() && scores.length > 0) span.setAttribute(Attr.reward, reward);
}
