/** The port to a teacher, a model which scores tokens and is never trained. */

import type { ScoringOptions, TrainingSample } from "@hone/train";

export interface Teacher {
  /** Per sample [N]: log-probability of each trained token. @throws {RetryableError} when it is away for now. */
  logprobs(samples: readonly TrainingSample[], options: ScoringOptions): Promise<readonly Float32Array[]>;
  /** Frees its memory; calls that are still open fail. */
  close(): Promise<void>;
}

/** The teachers of a run that are not version 0 of its policy, by their places in `algorithm.distillation.teachers`. */
export type Teachers = ReadonlyMap<number, Teacher>;
