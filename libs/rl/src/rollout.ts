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

/** One training row: what the engine saw and sampled, verbatim. */
export interface Sample {
  /** [T] every token in order. */
  readonly tokenIds: ArrayLike<number>;
  /** [T] 1 = sampled by the model and trained, 0 = prompt, tool or environment. */
  readonly lossMask: Uint8Array;
  /** [N] log-probability under the sampling distribution, one per mask-1 token. */
  readonly logprobs: ArrayLike<number>;
  /** Policy versions of the mask-1 tokens, in order; counts sum to N. */
  readonly versions: readonly VersionSpan[];
}

/** One model call: where the tokens that it sampled stand. */
export interface TurnSpan {
  /** Index of the sample that holds them. */
  readonly sample: number;
  /** [begin, end) within the sample. */
  readonly begin: number;
  readonly end: number;
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
}

/** How the calls of one tool went that it could take. */
export interface ToolUse {
  readonly name: string;
  readonly calls: number;
  /** Of these, how many failed. */
  readonly failed: number;
  /** What the last one that failed said; empty = none did. */
  readonly error: string;
}

/** A rollout as training sees it: how it ended, what it was worth, what was sampled. */
export interface Rollout {
  readonly slot: Slot;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** Why it ended so, for people; absent = it was not said. */
  readonly reason?: string;
  /** Tools that it called; absent = none. */
  readonly toolUses?: readonly ToolUse[];
  readonly scores: readonly Score[];
  readonly samples: readonly Sample[];
  /** Numbers that the agent reports, such as `{ success: 1 }`. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Model calls. */
  readonly turnCount: number;
  /** [turnCount] each call's tokens; absent where no score rewards a turn. */
  readonly turns?: readonly TurnSpan[];
}

/** The rollouts of one task in one step, in order of their index. */
export interface Group {
  /** Index of the task within the batch. */
  readonly task: number;
  readonly rollouts: readonly Rollout[];
}

/** Number of mask-1 tokens of a sample. */
export function sampledTokenCount(sample: Sample): number {
  let count = 0;
  for (const bit of sample.lossMask) count += bit;
  return count;
}

/** Number of mask-1 tokens of a rollout, over its samples. */
export function rolloutTokenCount(rollout: Rollout): number {
  return rollout.samples.reduce((total, sample) => total + sampledTokenCount(sample), 0);
}

/**
 * Checks that a sample's parts fit together.
 * @throws {BrokenRecordError} naming the part that does not.
 */
export function checkSample(sample: Sample, name: string): void {
  const tokenCount = sample.tokenIds.length;
  if (sample.lossMask.length !== tokenCount) {
    throw new BrokenRecordError(
      `Cannot train on ${name} as its mask must have one entry per token (${tokenCount}): current value is ${sample.lossMask.length}`,
    );
  }
  if (sample.lossMask.some((bit) => bit > 1)) {
    throw new BrokenRecordError(
      `Cannot train on ${name} as its mask must hold 0 and 1 only: current value is ${sample.lossMask.find((bit) => bit > 1)}`,
    );
  }
  if (sample.lossMask[0] === 1) {
    throw new BrokenRecordError(
      `Cannot train on ${name} as its first token has no context to be sampled from: current value is mask 1`,
    );
  }
  const sampled = sampledTokenCount(sample);
  if (sample.logprobs.length !== sampled) {
    throw new BrokenRecordError(
      `Cannot train on ${name} as it must have one logprob per sampled token (${sampled}): current value is ${sample.logprobs.length}`,
    );
  }
  for (let i = 0; i < sampled; i++) {
    if (!Number.isFinite(sample.logprobs[i])) {
      throw new BrokenRecordError(
        `Cannot train on ${name} as logprobs must be finite: current value is ${sample.logprobs[i]} at ${i}`,
      );
    }
  }
  const versioned = sample.versions.reduce((total, span) => total + span.tokenCount, 0);
  if (versioned !== sampled) {
    throw new BrokenRecordError(
      `Cannot train on ${name} as its version spans must cover its ${sampled} sampled tokens: current value is ${versioned}`,
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
