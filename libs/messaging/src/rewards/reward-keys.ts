/**
 * The keys of the bucket REWARDS.
 *
 *   open.<run>.<slot>     a finished rollout that is not scored yet, as it waits for rewards
 *   given.<run>.<slot>    the rewards of one that is scored, so that a repeated request is recognised until the run ends
 *   clock                 has no meaning; its writing tells the time of the bus (bus-time.ts)
 *
 * Only the judge writes them. Two kinds of keys, as the open ones are listed often and the others only grow in number.
 */

import { type Slot, slotKey } from "@hone/core";
import { BucketName } from "../streams/streams.ts";

/** The first token of keys of rollouts that wait. */
export const OPEN_REWARDS = "open";
const GIVEN = "given";
export const CLOCK_KEY = "clock";
/** The stream below the bucket. */
export const REWARDS_STREAM = `KV_${BucketName.rewards}`;
const PREFIX = `$KV.${BucketName.rewards}.`;
export const CLOCK_SUBJECT = `${PREFIX}${CLOCK_KEY}`;

export function openRewardKey(runId: string, slot: Slot): string {
  return `${OPEN_REWARDS}.${runId}.${slotKey(slot)}`;
}

export function givenRewardKey(runId: string, slot: Slot): string {
  return `${GIVEN}.${runId}.${slotKey(slot)}`;
}

/** @returns the subjects of a run's open keys, or of all runs' for `"*"`. */
export function openSubjects(runId: string | "*"): string {
  return runId === "*" ? `${PREFIX}${OPEN_REWARDS}.>` : `${PREFIX}${OPEN_REWARDS}.${runId}.>`;
}

export function givenSubjects(runId: string): string {
  return `${PREFIX}${GIVEN}.${runId}.>`;
}

/** @returns the run in the subject of an open key. */
export function runOfOpenSubject(subject: string): string {
  return subject.slice(PREFIX.length).split(".")[1] ?? "";
}
