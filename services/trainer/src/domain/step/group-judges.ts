/** Judges that compare the rollouts of a group, as a step needs them from outside. */

import type { GroupJudgeConfig } from "@hone/config";
import type { Score } from "@hone/rl";

/** A complete group of scored rollouts. */
export interface GroupToCompare {
  readonly runId: string;
  /** Where the scored episodes stand in the stream. */
  readonly sequences: readonly number[];
  /** Those that compare. */
  readonly judges: readonly GroupJudgeConfig[];
}

export type GroupVerdict =
  /** Of each rollout, in the order asked for, the scores of all these judges. */
  | { readonly kind: "scored"; readonly scores: readonly (readonly Score[])[] }
  /** There is none to be had: why, for people. */
  | { readonly kind: "failed"; readonly reason: string };

export interface GroupJudges {
  /** @throws {RetryableError} when the judge is away. */
  compare(group: GroupToCompare, signal: AbortSignal): Promise<GroupVerdict>;
}
