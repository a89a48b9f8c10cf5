/** The columns that are stored with the bytes of a scored episode, which lists show and filters use. */

import { isScorable, type Outcome, type Slot } from "@hone/core";
import type { Episode, ScoredEpisode } from "@hone/proto-gen/rollout";
import { storable } from "./run-event.ts";
import { type RolloutWords, rolloutWordsOf } from "./search/rollout-texts.ts";

export interface RolloutRecord {
  readonly runId: string;
  readonly slot: Slot;
  readonly attempt: number;
  /** How often its run had been resumed after a failure when the rollout was requested. */
  readonly resumption: number;
  readonly outcome: Outcome;
  readonly reason: string;
  /** Null where the outcome excludes the rollout from training; it then has no reward, not even 0. */
  readonly reward: number | null;
  readonly success: number | null;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly totalTokens: number;
  readonly durationMs: number;
  readonly taskId: string;
  /** What the search finds it by. */
  readonly words: RolloutWords;
}

/** @param identity slot and outcome of the episode, decoded. */
export function rolloutRecordOf(
  scored: ScoredEpisode,
  episode: Episode,
  identity: { readonly slot: Slot; readonly outcome: Outcome },
): RolloutRecord {
  const success = episode.metrics.success;
  let sampledTokens = 0;
  let totalTokens = 0;
  for (const sample of episode.samples) {
    totalTokens += sample.tokenIds.length;
    for (const bit of sample.lossMask) sampledTokens += bit;
  }
  return {
    runId: storable(episode.runId),
    ...identity,
    attempt: episode.attempt,
    resumption: episode.resumption,
    reason: storable(episode.reason),
    reward: isScorable(identity.outcome) ? finiteOrNull(scored.reward) : null,
    success: finiteOrNull(success),
    turns: episode.turns.length,
    sampledTokens,
    totalTokens,
    durationMs: finiteOrNull(episode.durationMs) ?? 0,
    taskId: storable(episode.task?.id ?? ""),
    words: rolloutWordsOf(scored, episode),
  };
}

function finiteOrNull(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
