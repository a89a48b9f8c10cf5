/** A critic on any training engine whose model has a value head: what such an engine scores tokens with are values. */

import { saveValueModel } from "@hone/checkpoint";
import type { TrainingSample } from "@hone/train";
import type { CriticEngine, ValueMinibatch, ValueResult } from "../domain/critic/critic-engine.ts";
import type { SavedState, TrainingEngine } from "../domain/step/training-engine.ts";

export class ValueEngine implements CriticEngine {
  readonly #engine: TrainingEngine;

  /** @param engine one for a model with a value head. */
  constructor(engine: TrainingEngine) {
    this.#engine = engine;
  }

  get stateBytes(): number {
    return this.#engine.stateBytes;
  }

  load(folder: string): Promise<void> {
    return this.#engine.load(folder);
  }

  async saveFirst(policy: string, folder: string): Promise<void> {
    await saveValueModel(policy, folder);
  }

  async values(samples: readonly TrainingSample[]): Promise<readonly Float32Array[]> {
    return (await this.#engine.logprobs(samples)).logprobs;
  }

  async trainMinibatch({ samples, term, optimizer, maxGradNorm }: ValueMinibatch): Promise<ValueResult> {
    const { logprobs, loss, gradNorm } = await this.#engine.trainMinibatch({
      samples,
      terms: [term],
      entropyCoefficient: 0,
      optimizer,
      maxGradNorm,
    });
    return { values: logprobs, loss, gradNorm };
  }

  save(folder: string): Promise<SavedState> {
    return this.#engine.save(folder);
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}
