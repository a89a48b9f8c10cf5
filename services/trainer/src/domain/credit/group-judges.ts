/** The port to the judges that compare the rollouts of a group. */

import type { GroupJudgeConfig } from "@hone/config";
import type { Score } from "@hone/rl";

/** A complete group of scored rollouts. */
export interface GroupToCompare {
  readonly runId: string;
  /** Positions of the scored episodes in the stream. */
  readonly sequences: readonly number[];
  /** The judges that compare them. */
  readonly judges: readonly GroupJudgeConfig[];
}

export type GroupVerdict =
  /** The scores of all these judges for each rollout, in the order of `sequences`. */
  | { readonly kind: "scored"; readonly scores: readonly (readonly Score[])[] }
  /** The group could not be compared; `reason` says why, for people. */
  | { readonly kind: "failed"; readonly reason: string };

export interface GroupJudges {
  /** @throws {RetryableError} when the judge is away. */
  compare(group: GroupToCompare, signal: AbortSignal): Promise<GroupVerdict>;
}
