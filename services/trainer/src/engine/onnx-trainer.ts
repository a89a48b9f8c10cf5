/**
 * The embedded engine itself: model, optimizer and gradient sessions, on the thread that makes it.
 *
 * Its methods occupy that thread while they compute: {@link OnnxTrainingEngine} runs it in a worker.
 */
import { availableParallelism } from "node:os";
import { type AdamWState, initialiseAdamW } from "@hone/checkpoint";
import { type EightBitTraining, releaseValues, type Weights } from "@hone/nn";
import {
  clipFactor,
  GradientRunner,
  NonFiniteError,
  type ScoringOptions,
  TrainingInputError,
  type TrainingSample,
  UpdateThreads,
} from "@hone/train";
import type {
  Minibatch,
  MinibatchResult,
  SampleScores,
  SavedState,
  TrainingEngine,
} from "../domain/step/training-engine.ts";
import {
  DEFAULT_MICROBATCH_TOKENS,
  DEFAULT_ROW_TOKENS,
  embeddedArithmetic,
  type OnnxEngineConfig,
  stateBytesOf,
} from "./engine-config.ts";
import { imitationOf } from "./imitation.ts";
import { checkTemperature, splitScores } from "./split-scores.ts";
import { type TrainerFiles, trainerFiles } from "./trainer-files.ts";

interface TrainerState {
  /** The trained weights, and with adapters also those of the base. */
  readonly weights: Weights;
  /** Undefined until something is trained or saved: an engine that only scores needs none. */
  optimizer: AdamWState | undefined;
}

export class OnnxTrainer implements TrainingEngine {
  readonly vocabSize: number;
  readonly stateBytes: number;
  readonly arithmetic = embeddedArithmetic();
  readonly #files: TrainerFiles;
  readonly #updates: UpdateThreads;
  readonly #runner: GradientRunner;
  #state: TrainerState | undefined;
  #reference: Weights | undefined;

  /** @param eightBits how it computes in eight bits, if the configuration asks for them */
  constructor(config: OnnxEngineConfig, eightBits?: EightBitTraining) {
    this.vocabSize = config.spec.vocabSize;
    this.stateBytes = stateBytesOf(config);
    this.#files = trainerFiles(config);
    const threads = config.threads ?? availableParallelism();
    this.#updates = new UpdateThreads(threads);
    this.#runner = new GradientRunner(config.spec, {
      lora: this.#files.model.lora,
      maxRowTokens: config.maxRowTokens ?? DEFAULT_ROW_TOKENS,
      maxMicrobatchTokens: config.maxMicrobatchTokens ?? DEFAULT_MICROBATCH_TOKENS,
      threads,
      updates: this.#updates,
      eightBits,
      ...(config.sharing === undefined ? {} : { sharing: config.sharing }),
      ...(config.recomputedLayers === undefined ? {} : { recomputedLayers: config.recomputedLayers }),
      ...(config.reservedBytes === undefined ? {} : { reservedBytes: config.reservedBytes }),
    });
  }

  async initialise(): Promise<void> {
    this.#state = { weights: await this.#files.initialise(), optimizer: undefined };
  }

  async load(folder: string): Promise<void> {
    this.#state = undefined; // Frees its memory before the next weights are loaded.
    const weights = await this.#files.load(folder);
    this.#state = { weights, optimizer: await this.#files.loadOptimizer(folder) };
  }

  async loadReference(folder: string): Promise<void> {
    this.#reference = undefined;
    this.#reference = await this.#files.load(folder);
  }

  async trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult> {
    const started = performance.now();
    const { samples, terms, entropyCoefficient, temperature = 1, optimizer, maxGradNorm } = minibatch;
    const { supervised = [] } = minibatch;
    const { weights } = this.#ready("train");
    checkTemperature({ temperature });
    const objective = { terms, entropyCoefficient, temperature };
    const found = await this.#runner.differentiate(weights, samples, objective, imitationOf(supervised));
    const gradNorm = await this.#updates.norm(found.gradients);
    if (!Number.isFinite(found.loss)) throw new NonFiniteError("loss", found.loss);
    if (!Number.isFinite(gradNorm)) throw new NonFiniteError("gradient norm", gradNorm);
    const factor = clipFactor(gradNorm, maxGradNorm);
    const { parameters } = this.#files;
    await this.#updates.update(
      parameters,
      weights,
      found.gradients,
      this.#moments("train"),
      optimizer,
      factor,
    );
    releaseValues(found.gradients);
    const { loss, beside } = found;
    const supervisedLogprobs = beside === undefined ? [] : splitScores(supervised, beside, started).logprobs;
    return { ...splitScores(samples, found, started), loss, gradNorm, supervisedLogprobs };
  }

  async resetOptimizer(): Promise<void> {
    this.#ready("reset the optimizer").optimizer = undefined;
  }

  async logprobs(samples: readonly TrainingSample[], options: ScoringOptions = {}): Promise<SampleScores> {
    const started = performance.now();
    checkTemperature(options);
    const { weights } = this.#ready("score samples");
    return splitScores(samples, await this.#runner.score(weights, samples, options), started);
  }

  async referenceLogprobs(
    samples: readonly TrainingSample[],
    options: ScoringOptions = {},
  ): Promise<SampleScores> {
    const started = performance.now();
    checkTemperature(options);
    if (this.#reference === undefined) {
      throw new TrainingInputError("no reference was loaded to score samples with");
    }
    return splitScores(samples, await this.#runner.score(this.#reference, samples, options), started);
  }

  async save(folder: string): Promise<SavedState> {
    const { weights } = this.#ready("save");
    return this.#files.save(folder, weights, this.#moments("save"));
  }

  async saveWeights(folder: string): Promise<SavedState> {
    return this.#files.save(folder, this.#ready("save weights").weights);
  }

  /** Does what the next update would begin with. Callers need not: it is of use while the run plays and nothing else is to be computed. */
  async prepare(): Promise<void> {
    if (this.#state !== undefined) await this.#runner.prepare(this.#state.weights);
  }

  async exportTo(folder: string): Promise<SavedState> {
    return this.#files.exportTo(folder, this.#ready("export").weights);
  }

  async close(): Promise<void> {
    this.#state = undefined;
    this.#reference = undefined;
    await Promise.all([this.#runner.close(), this.#updates.close()]);
  }

  #moments(action: string): AdamWState {
    const state = this.#ready(action);
    state.optimizer ??= initialiseAdamW(this.#files.parameters);
    return state.optimizer;
  }

  #ready(action: string): TrainerState {
    if (this.#state === undefined) {
      throw new TrainingInputError(`the engine has no weights, so it cannot ${action}; load some first`);
    }
    return this.#state;
  }
}
