/**
 * The embedded engine itself: model, optimizer and gradient sessions, on the thread that makes it.
 *
 * Its methods occupy that thread while they compute: {@link OnnxTrainingEngine} runs it in a worker.
 */
import { availableParallelism } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { initialiseWeights, listParameters, type ModelSpec, type ParameterInfo } from "@hone/nn";
import {
  type AdamWState,
  allocateShared,
  type Companions,
  checkLoss,
  clipFactor,
  GradientRunner,
  initialiseAdamW,
  loadModel,
  loadOptimizer,
  NonFiniteError,
  releaseValues,
  type ScoredEntries,
  saveCheckpoint,
  shareWeights,
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
} from "../domain/training-engine.ts";
import {
  DEFAULT_MICROBATCH_TOKENS,
  DEFAULT_ROW_TOKENS,
  type OnnxEngineConfig,
  stateBytesOf,
} from "./engine-config.ts";

interface TrainerState {
  readonly weights: Record<string, Float32Array>;
  readonly optimizer: AdamWState;
  readonly companions: Companions;
}

export class OnnxTrainer implements TrainingEngine {
  readonly vocabSize: number;
  readonly stateBytes: number;
  readonly #config: OnnxEngineConfig;
  /** What is trained. */
  readonly #parameters: readonly ParameterInfo[];
  readonly #updates: UpdateThreads;
  readonly #runner: GradientRunner;
  #state: TrainerState | undefined;

  constructor(config: OnnxEngineConfig) {
    this.vocabSize = config.spec.vocabSize;
    this.stateBytes = stateBytesOf(config);
    this.#config = config;
    this.#parameters = listParameters(config.spec);
    const threads = config.threads ?? availableParallelism();
    this.#updates = new UpdateThreads(threads);
    this.#runner = new GradientRunner(config.spec, {
      maxRowTokens: config.maxRowTokens ?? DEFAULT_ROW_TOKENS,
      maxMicrobatchTokens: config.maxMicrobatchTokens ?? DEFAULT_MICROBATCH_TOKENS,
      threads,
      updates: this.#updates,
      ...(config.sharing === undefined ? {} : { sharing: config.sharing }),
      ...(config.recomputedLayers === undefined ? {} : { recomputedLayers: config.recomputedLayers }),
    });
  }

  async initialise(): Promise<void> {
    const { spec, start, companions } = this.#config;
    const weights =
      start.kind === "fresh"
        ? shareWeights(initialiseWeights(spec, start.seed))
        : await this.#loadWeights(start.folder);
    this.#state = { weights, optimizer: initialiseAdamW(this.#parameters), companions };
  }

  async load(folder: string): Promise<void> {
    const { companions } = this.#config;
    this.#state = undefined; // Its memory is free before the next weights need theirs.
    const weights = await this.#loadWeights(folder);
    const optimizer = (await loadOptimizer(folder, this.#parameters)) ?? initialiseAdamW(this.#parameters);
    this.#state = { weights, optimizer, companions };
  }

  async trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult> {
    const started = performance.now();
    const { samples, loss, entropyCoefficient, temperature = 1, optimizer, maxGradNorm } = minibatch;
    const { weights, optimizer: moments } = this.#ready("train");
    checkLoss(loss);
    checkTemperature(temperature);
    const objective = { loss, entropyCoefficient, temperature };
    const found = await this.#runner.differentiate(weights, samples, objective);
    const gradNorm = await this.#updates.norm(found.gradients);
    if (!Number.isFinite(found.loss)) throw new NonFiniteError("loss", found.loss);
    if (!Number.isFinite(gradNorm)) throw new NonFiniteError("gradient norm", gradNorm);
    const factor = clipFactor(gradNorm, maxGradNorm);
    await this.#updates.update(this.#parameters, weights, found.gradients, moments, optimizer, factor);
    releaseValues(found.gradients);
    return { ...splitScores(samples, found, started), loss: found.loss, gradNorm };
  }

  async resetOptimizer(): Promise<void> {
    this.#state = { ...this.#ready("reset the optimizer"), optimizer: initialiseAdamW(this.#parameters) };
  }

  async logprobs(samples: readonly TrainingSample[], temperature = 1): Promise<SampleScores> {
    const started = performance.now();
    checkTemperature(temperature);
    const { weights } = this.#ready("score samples");
    return splitScores(samples, await this.#runner.score(weights, samples, temperature), started);
  }

  async save(folder: string): Promise<SavedState> {
    const { weights, optimizer, companions } = this.#ready("save");
    return saveCheckpoint(folder, { spec: this.#config.spec, weights, companions }, optimizer);
  }

  async saveWeights(folder: string): Promise<SavedState> {
    const { weights, companions } = this.#ready("save weights");
    return saveCheckpoint(folder, { spec: this.#config.spec, weights, companions });
  }

  async exportTo(folder: string): Promise<SavedState> {
    const { weights, companions } = this.#ready("export");
    const { spec, origin } = this.#config;
    return saveCheckpoint(folder, { spec, weights, companions, ...(origin === undefined ? {} : { origin }) });
  }

  async close(): Promise<void> {
    this.#state = undefined;
    await Promise.all([this.#runner.close(), this.#updates.close()]);
  }

  /** Into shared memory, where the threads read them. */
  async #loadWeights(folder: string): Promise<Record<string, Float32Array>> {
    const model = await loadModel(folder, allocateShared);
    requireSameShape(this.#config.spec, model.spec, folder);
    return model.weights;
  }

  #ready(action: string): TrainerState {
    if (this.#state === undefined) {
      throw new TrainingInputError(action, "the engine has weights (initialise or load comes first)", "none");
    }
    return this.#state;
  }
}

/** Cuts the flat numbers of all trained tokens into one array per sample. */
function splitScores(
  samples: readonly TrainingSample[],
  scored: ScoredEntries,
  started: number,
): SampleScores {
  const logprobs: Float32Array[] = [];
  const entropies: Float32Array[] = [];
  let from = 0;
  for (const { lossMask } of samples) {
    let to = from;
    for (let i = 0; i < lossMask.length; i++) to += lossMask[i]!;
    logprobs.push(scored.logprobs.slice(from, to));
    entropies.push(scored.entropies.slice(from, to));
    from = to;
  }
  return {
    logprobs,
    entropies,
    sampleTokenCount: scored.sampleTokenCount,
    packedTokenCount: scored.packedTokenCount,
    elapsedMs: performance.now() - started,
  };
}

function checkTemperature(temperature: number): void {
  if (!(temperature > 0)) {
    throw new TrainingInputError(
      "compute log-probabilities",
      "the temperature is above 0",
      String(temperature),
    );
  }
}

function requireSameShape(wanted: ModelSpec, found: ModelSpec, folder: string): void {
  for (const field of Object.keys(wanted) as (keyof ModelSpec)[]) {
    if (isDeepStrictEqual(wanted[field], found[field])) continue;
    const rule = `its ${field} is that of the run, ${JSON.stringify(wanted[field])}`;
    throw new TrainingInputError(`load ${folder}`, rule, JSON.stringify(found[field]));
  }
}
