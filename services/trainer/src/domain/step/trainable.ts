/**
 * Checks that the run's model can have made a rollout's samples. Otherwise one forged or damaged episode would make the
 * engine fail, and with it the step, the tenure and in the end the run.
 */

import { describeError, Outcome, slotKey } from "@hone/core";
import { BrokenRecordError, type Sample } from "@hone/rl";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";

/** The bounds that every sample of a run must meet. */
export interface SampleBounds {
  readonly vocabSize: number;
  readonly maxContextTokens: number;
}

/** Turns rollouts that cannot be trained into infra_failed ones without samples, which get no reward and no blame. */
export function leaveOutUntrainable(
  { run, engine, logger }: Pick<RunContext, "run" | "engine" | "logger">,
  scored: readonly ScoredRollout[],
): ScoredRollout[] {
  const bounds = {
    vocabSize: engine.vocabSize,
    maxContextTokens: run.config.rollout.maxContextTokens,
  };
  return scored.map((rollout) => {
    try {
      for (const sample of rollout.samples) checkBounds(sample, bounds);
      return rollout;
    } catch (error) {
      const slot = slotKey(rollout.slot);
      const reason = describeError(error);
      logger.error("a rollout cannot be trained and is left out", { slot, reason });
      return { ...rollout, outcome: Outcome.infraFailed, reason, samples: [] };
    }
  });
}

/** @throws {BrokenRecordError} naming the value that no sample of the run can have. */
export function checkBounds(
  { tokenIds }: Pick<Sample, "tokenIds">,
  { vocabSize, maxContextTokens }: SampleBounds,
): void {
  if (tokenIds.length > maxContextTokens) {
    throw new BrokenRecordError(
      `a sample of ${tokenIds.length} tokens is longer than the run's context of ${maxContextTokens}`,
    );
  }
  for (let at = 0; at < tokenIds.length; at++) {
    if (tokenIds[at]! < vocabSize) continue;
    throw new BrokenRecordError(
      `a sample has the token id ${tokenIds[at]} at position ${at}, but ids must be below ${vocabSize}`,
    );
  }
}
