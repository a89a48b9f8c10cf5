/**
 * What training reads of a rollout, free of wire and storage types.
 *
 * Letters: T tokens of a sample, N of them sampled by the model (mask 1).
 */

import type { Outcome, Slot } from "@hone/core";
import { BrokenRecordError } from "./errors.ts";

/** Consecutive sampled tokens of one policy version. */
export interface VersionSpan {
  readonly version: number;
  /** How many mask-1 tokens, counted on from the end of the span before. */
  readonly tokenCount: number;
}

/** Tokens of which some are learnt. */
export interface MaskedTokens {
  /** [T] every token in order. */
  readonly tokenIds: ArrayLike<number>;
  /** [T] 1 = learnt, as the model or whoever is imitated wrote it; 0 = prompt, tool or environment. The first token is 0. */
  readonly lossMask: ArrayLike<number>;
}

/** One training row: what the engine saw and sampled, verbatim. */
export interface Sample extends MaskedTokens {
  readonly lossMask: Uint8Array;
  /** [N] log-probability under the sampling distribution, one per mask-1 token. */
  readonly logprobs: ArrayLike<number>;
  /** Policy versions of the mask-1 tokens, in order; counts sum to N. */
  readonly versions: readonly VersionSpan[];
  /** The role that sampled them, of those that the run names; absent = no such role did. */
  readonly role?: string;
}

/** One model call: where the tokens that it sampled stand. */
export interface TurnSpan {
  /** Index of the sample that holds them. */
  readonly sample: number;
  /** [begin, end) within the sample. */
  readonly begin: number;
  readonly end: number;
  /** Name of the environment's state in which the turn acted; absent = there is no environment. */
  readonly state?: string;
}

/** What a judge gave one turn. */
export interface TurnReward {
  /** Index of the turn, from 0. */
  readonly turn: number;
  readonly value: number;
}

/** One judge's word on a rollout. */
export interface Score {
  readonly judge: string;
  readonly weight: number;
  readonly value: number;
  /** Figures beside the value; absent = none. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Rewards of single turns, no part of the value; absent = none were given. */
  readonly turnRewards?: readonly TurnReward[];
  /** The roles whose reward it is part of; absent = all of them. */
  readonly roles?: readonly string[];
  /** Values for single roles in place of `value`; absent = it is the same for all. */
  readonly roleValues?: Readonly<Record<string, number>>;
}

/** How the calls of one tool went that it could take. */
export interface ToolUse {
  readonly name: string;
  readonly calls: number;
  /** How many of these failed. */
  readonly failed: number;
  /** What the last one that failed said; empty = none did. */
  readonly error: string;
}

/** A rollout as training sees it: how it ended, what it was worth, what was sampled. */
export interface Rollout {
  readonly slot: Slot;
  /** The role whose part of a rollout this is; absent = it is the rollout as a whole, or the part that no role named. */
  readonly role?: string;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** Why it ended so, for people; absent = it was not said. */
  readonly reason?: string;
  /** Tools that it called; absent = none. */
  readonly toolUses?: readonly ToolUse[];
  readonly scores: readonly Score[];
  readonly samples: readonly Sample[];
  /** Of a role's part: the index of each of its samples in the whole; absent = the rollout is whole. */
  readonly samplePlaces?: readonly number[];
  /** Numbers that the agent reports, such as `{ success: 1 }`. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Model calls. */
  readonly turnCount: number;
  /** [turnCount] each call's tokens; absent = they are not known. */
  readonly turns?: readonly TurnSpan[];
}

/** The rollouts of one task in one step, in order of their index. */
export interface Group<R extends Rollout = Rollout> {
  /** Index of the task within the batch. */
  readonly task: number;
  /** The environment or data source that the task is of; absent = all tasks are of one. */
  readonly source?: string;
  readonly rollouts: readonly R[];
  /** One more rollout of the task, played with the most likely tokens; it is not trained. Absent = none was played. */
  readonly baseline?: R;
}

/** Number of mask-1 tokens of a sample. */
export function sampledTokenCount({ lossMask }: Pick<MaskedTokens, "lossMask">): number {
  let count = 0;
  for (let i = 0; i < lossMask.length; i++) count += lossMask[i]!;
  return count;
}

/** Number of mask-1 tokens of a rollout, over its samples. */
export function rolloutTokenCount(rollout: Rollout): number {
  return rollout.samples.reduce((total, sample) => total + sampledTokenCount(sample), 0);
}

/** [N] log-probabilities of a rollout's sampled tokens when they were sampled, sample by sample. */
export function rolloutLogprobs({ samples }: Pick<Rollout, "samples">): number[] {
  return samples.flatMap(({ logprobs }) => Array.from(logprobs));
}

/**
 * Checks that a sample's parts fit together.
 * @throws {BrokenRecordError} naming the part that does not.
 */
export function checkSample(sample: Sample, name: string): void {
  const tokenCount = sample.tokenIds.length;
  if (sample.lossMask.length !== tokenCount) {
    throw new BrokenRecordError(
      `${name} has ${tokenCount} tokens and a mask of ${sample.lossMask.length} entries; a mask has one entry for each token`,
    );
  }
  if (sample.lossMask.some((bit) => bit > 1)) {
    throw new BrokenRecordError(
      `the mask of ${name} holds ${sample.lossMask.find((bit) => bit > 1)}; only 0 and 1 are allowed`,
    );
  }
  if (sample.lossMask[0] === 1) {
    throw new BrokenRecordError(
      `the first token of ${name} has mask 1; it has no context to be sampled from, so its mask must be 0`,
    );
  }
  const sampled = sampledTokenCount(sample);
  if (sample.logprobs.length !== sampled) {
    throw new BrokenRecordError(
      `${name} has ${sampled} sampled tokens and ${sample.logprobs.length} logprobs; each sampled token has one`,
    );
  }
  for (let i = 0; i < sampled; i++) {
    if (!Number.isFinite(sample.logprobs[i])) {
      throw new BrokenRecordError(
        `the logprob of sampled token ${i} of ${name} is ${sample.logprobs[i]}; it must be finite`,
      );
    }
  }
  const versioned = sample.versions.reduce((total, span) => total + span.tokenCount, 0);
  if (versioned !== sampled) {
    throw new BrokenRecordError(
      `the version spans of ${name} cover ${versioned} tokens; they must cover its ${sampled} sampled tokens`,
    );
  }
}

/** Lowest and highest policy version that sampled a rollout's tokens; undefined when it has none. */
export function versionRange(rollout: Rollout): { lowest: number; highest: number } | undefined {
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  for (const sample of rollout.samples) {
    for (const span of sample.versions) {
      if (span.tokenCount === 0) continue;
      lowest = Math.min(lowest, span.version);
      highest = Math.max(highest, span.version);
    }
  }
  return lowest === Number.POSITIVE_INFINITY ? undefined : { lowest, highest };
}
