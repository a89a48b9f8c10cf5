/**
 * Whether a rollout's samples are ones that the run's model can have made. Others would make the engine fail, and with it
 * the step, the tenure and in the end the run, for one forged or damaged episode.
 */

import { describeError, Outcome, slotKey } from "@hone/core";
import { BrokenRecordError, type Sample } from "@hone/rl";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";

/** What bounds the samples of a run. */
export interface SampleBounds {
  readonly vocabSize: number;
  readonly maxContextTokens: number;
}

/** Turns what cannot be trained into infra_failed rollouts without samples: nobody's fault, and nobody's reward. */
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

/** @throws {BrokenRecordError} naming what no sample of the run can hold. */
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
