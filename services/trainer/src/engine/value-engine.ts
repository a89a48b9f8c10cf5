/** A critic on any training engine whose model has a value head: what such an engine scores tokens with are values. */

import { saveValueModel } from "@hone/checkpoint";
import type { TrainingSample } from "@hone/train";
import type { CriticEngine, ValueMinibatch, ValueResult } from "../domain/critic/critic-engine.ts";
import type { SavedState, TrainingEngine } from "../domain/step/training-engine.ts";

export class ValueEngine implements CriticEngine {
  readonly #engine: TrainingEngine;
  readonly #from: string | undefined;

  /**
   * @param engine one for a model with a value head.
   * @param from the folder of a language model with whose layers it begins; absent = with those of the policy.
   */
  constructor(engine: TrainingEngine, from?: string) {
    this.#engine = engine;
    this.#from = from;
  }

  get stateBytes(): number {
    return this.#engine.stateBytes;
  }

  load(folder: string): Promise<void> {
    return this.#engine.load(folder);
  }

  async saveFirst(policy: string, folder: string): Promise<void> {
    await saveValueModel(this.#from ?? policy, folder);
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
