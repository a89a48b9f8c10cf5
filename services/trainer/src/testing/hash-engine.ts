/** Engines in memory for tests of the domain: their weights are a hash of everything that they were trained on. */

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { TrainingSample } from "@hone/train";
import type { CriticEngine, ValueMinibatch, ValueResult } from "../domain/critic/critic-engine.ts";
import type {
  Minibatch,
  MinibatchResult,
  SampleScores,
  SavedState,
  TrainingEngine,
} from "../domain/step/training-engine.ts";
import type { MemoryWorld } from "./memory-world.ts";

const STATE_FILE = "state";
/** Token ids are below this number, which is above every id that a {@link MemoryWorld} samples. */
const VOCABULARY_SIZE = 8;

/** An engine whose state is a hash of everything that it was trained on, in order. */
export class HashEngine implements TrainingEngine {
  readonly vocabSize: number;
  readonly stateBytes = 0;
  /** Enters every hash. */
  readonly arithmetic: string;
  readonly #world: MemoryWorld;
  #state = "";
  #reference = "";

  constructor(world: MemoryWorld, vocabSize = VOCABULARY_SIZE, arithmetic = "hashes") {
    this.#world = world;
    this.vocabSize = vocabSize;
    this.arithmetic = arithmetic;
  }

  async initialise(): Promise<void> {
    this.#state = "fresh";
  }

  async load(folder: string): Promise<void> {
    this.#world.point("load");
    this.#state = await readFile(path.join(folder, STATE_FILE), "utf8");
  }

  async trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult> {
    this.#world.point("train");
    const { samples, terms, optimizer, supervised = [] } = minibatch;
    const hash = createHash("sha256")
      .update(this.#state + this.arithmetic)
      .update(JSON.stringify({ terms, optimizer }));
    for (const { tokenIds, inputs = {}, weights } of samples) {
      hash.update(JSON.stringify([tokenIds, inputs.advantage, weights, inputs.referenceLogprob ?? []]));
    }
    for (const { tokenIds, weights } of supervised)
      hash.update(JSON.stringify([Array.from(tokenIds), weights]));
    this.#state = hash.digest("hex");
    const { logprobs: supervisedLogprobs } = await this.logprobs(supervised);
    return { ...(await this.logprobs(samples)), loss: 1, gradNorm: 1, supervisedLogprobs };
  }

  async resetOptimizer(): Promise<void> {
    this.#state = createHash("sha256").update(`${this.#state} without moments`).digest("hex");
  }

  async logprobs(samples: readonly TrainingSample[]): Promise<SampleScores> {
    return {
      logprobs: samples.map(({ weights, inputs }) =>
        Float32Array.from(inputs?.behaviourLogprob ?? new Float32Array(weights.length)),
      ),
      entropies: samples.map(({ weights }) => new Float32Array(weights.length)),
      squares: samples.map(({ weights }) => new Float32Array(weights.length)),
      sampleTokenCount: 0,
      packedTokenCount: 0,
      elapsedMs: 0,
    };
  }

  async loadReference(folder: string): Promise<void> {
    this.#world.point("load reference");
    this.#reference = await readFile(path.join(folder, STATE_FILE), "utf8");
  }

  async referenceLogprobs(samples: readonly TrainingSample[]): Promise<SampleScores> {
    const scores = await this.logprobs(samples);
    const shift = Number.parseInt(createHash("sha256").update(this.#reference).digest("hex").slice(0, 4), 16);
    return { ...scores, logprobs: scores.logprobs.map((values) => values.map((value) => value - shift)) };
  }

  async save(folder: string): Promise<SavedState> {
    this.#world.point("before save");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, STATE_FILE), this.#state);
    this.#world.point("after save");
    return { digest: this.#state, bytes: this.#state.length };
  }

  async saveWeights(folder: string): Promise<SavedState> {
    this.#world.point("before save of weights");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, STATE_FILE), this.#state);
    this.#world.point("after save of weights");
    return { digest: this.#state, bytes: this.#state.length };
  }

  async exportTo(folder: string): Promise<SavedState> {
    this.#world.point("before export");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, STATE_FILE), this.#state);
    this.#world.point("after export");
    return { digest: this.#state, bytes: this.#state.length };
  }

  async close(): Promise<void> {
    this.#state = "closed";
  }
}

/** A critic of this kind, whose values are digits of its hash: a critic that is lost on the way gives other advantages. */
export class HashCritic implements CriticEngine {
  readonly stateBytes = 0;
  readonly #world: MemoryWorld;
  #state = "";

  constructor(world: MemoryWorld) {
    this.#world = world;
  }

  async load(folder: string): Promise<void> {
    this.#world.point("load critic");
    this.#state = await readFile(path.join(folder, STATE_FILE), "utf8");
  }

  async saveFirst(policy: string, folder: string): Promise<void> {
    const ofPolicy = await readFile(path.join(policy, STATE_FILE), "utf8");
    await this.#write(folder, createHash("sha256").update(`critic of ${ofPolicy}`).digest("hex"));
  }

  async values(samples: readonly TrainingSample[]): Promise<readonly Float32Array[]> {
    if (this.#state === "") throw new Error("the critic was never loaded");
    return samples.map(({ tokenIds, weights }) =>
      Float32Array.from({ length: weights.length }, (_, token) => {
        const hash = createHash("sha256").update(`${this.#state} ${tokenIds} ${token}`).digest();
        return hash[0]! / 256;
      }),
    );
  }

  async trainMinibatch({ samples, term, optimizer }: ValueMinibatch): Promise<ValueResult> {
    this.#world.point("train critic");
    const values = await this.values(samples);
    const hash = createHash("sha256").update(this.#state).update(JSON.stringify({ term, optimizer }));
    for (const { tokenIds, inputs, weights } of samples) {
      hash.update(JSON.stringify([tokenIds, inputs?.oldValue, inputs?.return, weights]));
    }
    this.#state = hash.digest("hex");
    return { values, loss: 1, gradNorm: 1 };
  }

  async save(folder: string): Promise<SavedState> {
    await this.#write(folder, this.#state);
    return { digest: this.#state, bytes: this.#state.length };
  }

  async close(): Promise<void> {
    this.#state = "";
  }

  async #write(folder: string, state: string): Promise<void> {
    this.#world.point("before save of critic");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, STATE_FILE), state);
    this.#world.point("after save of critic");
  }
}
