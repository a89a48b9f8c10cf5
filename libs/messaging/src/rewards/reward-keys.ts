/**
 * The keys of the bucket REWARDS.
 *
 *   open.<run>.<slot>     a finished rollout that is not scored yet, as it waits for rewards
 *   given.<run>.<slot>    the rewards of one that is scored, so that a repeated request is recognised until the run ends
 *   run.<run>             says that the run has keys here; its value has no meaning
 *   clock                 has no meaning; its writing tells the time of the bus (bus-time.ts)
 *
 * Only the judge writes them. The open keys are listed often, the others of a rollout only grow in number and are never listed.
 */

import { type Slot, slotKey } from "@hone/core";
import { BucketName } from "../streams/streams.ts";

/** The first token of keys of rollouts that wait. */
export const OPEN_REWARDS = "open";
const GIVEN = "given";
const RUN = "run";
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

/** Written before a run's other keys. */
export function rewardedRunKey(runId: string): string {
  return `${RUN}.${runId}`;
}

/** @returns the subject of the key of a run, or of all runs' for `"*"`. */
export function runSubjects(runId: string | "*"): string {
  return `${PREFIX}${RUN}.${runId}`;
}

/** @returns the subjects of a run's open keys, or of all runs' for `"*"`. */
export function openSubjects(runId: string | "*"): string {
  return runId === "*" ? `${PREFIX}${OPEN_REWARDS}.>` : `${PREFIX}${OPEN_REWARDS}.${runId}.>`;
}

export function givenSubjects(runId: string): string {
  return `${PREFIX}${GIVEN}.${runId}.>`;
}

/** @returns the run in the subject of an open key, or of the key of a run. */
export function runOfRewardSubject(subject: string): string {
  return subject.slice(PREFIX.length).split(".")[1] ?? "";
}
