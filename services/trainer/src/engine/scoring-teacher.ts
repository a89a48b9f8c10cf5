/** A teacher on any training engine, whose weights are loaded by the first call and never updated. */

import type { ScoringOptions, TrainingSample } from "@hone/train";
import type { TrainingEngine } from "../domain/step/training-engine.ts";
import type { Teacher } from "../domain/teachers/teacher.ts";

export class ScoringTeacher implements Teacher {
  readonly #engine: TrainingEngine;
  readonly #folder: string;
  #loaded: Promise<void> | undefined;

  /** @param folder the model's folder. */
  constructor(engine: TrainingEngine, folder: string) {
    this.#engine = engine;
    this.#folder = folder;
  }

  async logprobs(
    samples: readonly TrainingSample[],
    options: ScoringOptions,
  ): Promise<readonly Float32Array[]> {
    this.#loaded ??= this.#engine.load(this.#folder);
    await this.#loaded;
    return (await this.#engine.logprobs(samples, options)).logprobs;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}
