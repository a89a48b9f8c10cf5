/** Splits the flat numbers of all trained tokens into those of each sample, as the port returns them. */
import {
  type ScoredEntries,
  type ScoringOptions,
  TrainingInputError,
  type TrainingSample,
} from "@hone/train";
import type { SampleScores } from "../domain/step/training-engine.ts";

/** Cuts the flat numbers of all trained tokens into one array per sample. @param started when the call began, of `performance.now` */
export function splitScores(
  samples: readonly Pick<TrainingSample, "lossMask">[],
  scored: ScoredEntries,
  started: number,
): SampleScores {
  const logprobs: Float32Array[] = [];
  const entropies: Float32Array[] = [];
  const squares: Float32Array[] = [];
  let from = 0;
  for (const { lossMask } of samples) {
    let to = from;
    for (let i = 0; i < lossMask.length; i++) to += lossMask[i]!;
    logprobs.push(scored.scores.slice(from, to));
    entropies.push(scored.entropies.slice(from, to));
    squares.push(scored.squares.slice(from, to));
    from = to;
  }
  return {
    logprobs,
    entropies,
    squares,
    sampleTokenCount: scored.sampleTokenCount,
    packedTokenCount: scored.packedTokenCount,
    elapsedMs: performance.now() - started,
  };
}

/** @throws TrainingInputError where logits cannot be divided by it. */
export function checkTemperature({ temperature = 1 }: ScoringOptions): void {
  if (temperature > 0) return;
  throw new TrainingInputError(`the temperature is ${temperature}; log-probabilities need one above 0`);
}
