/**
 * Finished rollouts that wait for rewards: what their entries in the bucket REWARDS say.
 *
 * E1: an entry is decided once all its rewards are there or its deadline has passed; it is never undecided again, and the scored
 *     episode follows from it alone. So whoever publishes that, and however often, publishes the same.
 * E2: of two episodes of one rollout that were made for the same resumption of its run the first counts. If the second has the
 *     same tokens it is the same rollout made again, as after a stream lost messages, and keeps the rewards.
 */

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Outcome, slotKey } from "@hone/core";
import { outcomeToWire, slotFromWire } from "@hone/messaging";
import {
  type AwaitedReward,
  type GivenReward,
  type RolloutRewards,
  RolloutRewardsSchema,
} from "@hone/proto-gen/judge";
import {
  type Episode,
  type Score,
  type ScoredEpisode,
  ScoredEpisodeSchema,
  ScoreSchema,
} from "@hone/proto-gen/rollout";
import { totalOf } from "../../domain/score-episode.ts";

/** Figure of a judge with a default: 1 if the reward was given, 0 if the default was used. */
const GIVEN_FIGURE = "given";

/** @returns those whose rewards have not come. */
export function missingOf({ awaited, rewards }: RolloutRewards): AwaitedReward[] {
  return awaited.filter(({ judge }) => rewardOf(rewards, judge) === undefined);
}

export function rewardOf(rewards: readonly GivenReward[], judge: string): GivenReward | undefined {
  return rewards.find((each) => each.judge === judge);
}

/** E1 */
export function isDecided(entry: RolloutRewards): boolean {
  return entry.isExpired || missingOf(entry).length === 0;
}

/** Unix milliseconds, by the clock of the bus. */
export function deadlineOf({ sinceMs, deadlineMs }: RolloutRewards): number {
  return Number(sinceMs + deadlineMs);
}

/** @returns the scored episode of an entry that is decided. */
export function scoredOf(entry: RolloutRewards): ScoredEpisode {
  const { finished, awaited, rewards, scores } = entry;
  const without = missingOf(entry).find(({ defaultValue }) => defaultValue === undefined);
  if (without !== undefined) {
    const reason = `no reward for the judge "${without.judge}" came within ${entry.deadlineMs} ms`;
    return leftOut(entry, reason);
  }
  const all: Score[] = [...scores];
  for (const each of awaited.toSorted((a, b) => a.place - b.place)) {
    all.splice(each.place, 0, scoreOf(each, rewardOf(rewards, each.judge)));
  }
  const total = totalOf(all);
  if (total.kind === "failed") return leftOut(entry, total.reason);
  return create(ScoredEpisodeSchema, { ...(finished && { finished }), scores: all, reward: total.reward });
}

function scoreOf(awaited: AwaitedReward, given: GivenReward | undefined): Score {
  const { judge, weight, roles, defaultValue } = awaited;
  const metrics = defaultValue === undefined ? {} : { [GIVEN_FIGURE]: given === undefined ? 0 : 1 };
  const value = given?.value ?? defaultValue ?? Number.NaN;
  const reason = given?.reason ?? "";
  return create(ScoreSchema, { judge, weight, value, metrics, roles: [...roles], reason });
}

function leftOut({ finished }: RolloutRewards, reason: string): ScoredEpisode {
  const outcome = outcomeToWire(Outcome.infraFailed);
  return create(ScoredEpisodeSchema, { ...(finished && { finished }), outcome, reason });
}

/** @returns what is kept of an entry once its episode is scored. */
export function givenOf({
  finished,
  episodeDigest,
  sessionKeyDigests,
  awaited,
  rewards,
  isExpired,
}: RolloutRewards) {
  return create(RolloutRewardsSchema, {
    ...(finished && { finished }),
    episodeDigest,
    sessionKeyDigests,
    awaited,
    rewards,
    isExpired,
  });
}

/** SHA-256 of what the model read and wrote, by which the same rollout made again is recognised (E2). */
export function episodeDigest({ samples, turns, task, outcome }: Episode): Uint8Array {
  const hash = createHash("sha256").update(`${task?.id}\n${outcome}\n`);
  for (const { tokenIds } of samples) hash.update(`${tokenIds.join(" ")}\n`);
  for (const { promptText, responseText } of turns) hash.update(JSON.stringify([promptText, responseText]));
  return hash.digest();
}

/**
 * Decides between the entry of an episode that has just come and the one that is there (E2).
 * @param isScored whether the episode of `old` is scored already.
 * @returns the entry to store; undefined = the one that is there stays.
 */
export function successorOf(
  old: RolloutRewards,
  next: RolloutRewards,
  isScored: boolean,
): RolloutRewards | undefined {
  const [before, after] = [old.finished, next.finished];
  if (before === undefined || after === undefined) return next;
  if (before.resumption !== after.resumption) return before.resumption < after.resumption ? next : undefined;
  if (before.position === after.position && before.attempt === after.attempt) return undefined;
  if (Buffer.from(old.episodeDigest).equals(next.episodeDigest)) {
    return create(RolloutRewardsSchema, { ...next, rewards: old.rewards, isExpired: old.isExpired });
  }
  // A lower position: the stream was started over, and the earlier episode is gone.
  return isScored || after.position < before.position ? next : undefined;
}

/** @returns the run and the slot of an entry, for logs and spans. @throws {TerminalError} when it names no rollout. */
export function rolloutIn({ finished }: RolloutRewards) {
  const slot = slotFromWire(finished?.slot);
  const { runId = "", attempt = 1, resumption = 0 } = finished ?? {};
  return { runId, slot, attempt, resumption, name: slotKey(slot) };
}
