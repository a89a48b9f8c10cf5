/** What a commit says of its step and its run for the chain, beside what it says anyway. */

import type { Slot } from "@hone/core";

/** By what the rows of a run name its settings and its tokenizer: SHA-256, hexadecimal. */
export interface RunIdentity {
  readonly settings: string;
  /** Of the files of the tokenizer in the run's folder. */
  readonly tokenizer: string;
}

/** Why a rollout was not trained. Fixed vocabulary; the ledger keeps the texts. */
export const LeftOutWhy = {
  /** Its outcome is not trained under the rules of the run file. */
  outcome: "outcome",
  /** Dynamic sampling: its group teaches nothing. */
  flatGroup: "flat_group",
  /** Dynamic sampling: its group teaches, and the step had enough without it. */
  surplus: "surplus",
} as const;
export type LeftOutWhy = (typeof LeftOutWhy)[keyof typeof LeftOutWhy];

/** A rollout that was not trained. */
export interface LeftOutRollout {
  readonly slot: Slot;
  readonly attempt: number;
  readonly outcome: string;
  readonly why: LeftOutWhy;
  /** What its outcome said, for people; empty = nothing. */
  readonly reason: string;
}
