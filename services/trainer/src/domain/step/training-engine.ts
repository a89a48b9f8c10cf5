/**
 * The port to a training engine: the model, its optimizer and the arithmetic of an update.
 *
 * An engine is made for one model and knows nothing of runs, rollouts or rewards: losses are data. Calls are executed
 * one after the other in the order they were made; a call never blocks the caller's event loop. The same calls on the
 * same state give the same bits. A call ends when it is done or when the engine is closed, which stops it at once.
 */
import type { LossName, LossTerm } from "@hone/rl";
import type { AdamWOptions, TrainingSample } from "@hone/train";

/** One optimizer update. */
export interface Minibatch {
  /** In an order that does not depend on arrival: sums, and so the bits of the result, follow it. */
  readonly samples: readonly TrainingSample[];
  /** Added up for each token; the samples carry what they read. */
  readonly terms: readonly LossTerm<LossName>[];
  /** Factor of the entropy bonus, which is averaged with the samples' weights; 0 for none. */
  readonly entropyCoefficient: number;
  /** Temperature that the samples were sampled at, above 0; log-probabilities refer to it. Default 1. */
  readonly temperature?: number;
  readonly optimizer: AdamWOptions;
  /** Gradients of a larger global norm are scaled down to it. */
  readonly maxGradNorm: number;
}

/** What the engine computed for samples. N trained tokens of a sample, in order. */
export interface SampleScores {
  /** Per sample [N]: log-probability of each trained token. */
  readonly logprobs: readonly Float32Array[];
  /** Per sample [N]: entropy, in nats, of the distribution that each trained token comes from. */
  readonly entropies: readonly Float32Array[];
  /** Tokens that the samples would have cost as separate sequences. */
  readonly sampleTokenCount: number;
  /** Tokens that were computed, shared prefixes once. */
  readonly packedTokenCount: number;
  readonly elapsedMs: number;
}

/** What an update did; the scores are those before it. */
export interface MinibatchResult extends SampleScores {
  readonly loss: number;
  /** Global norm of the gradient before clipping. */
  readonly gradNorm: number;
}

/** A state that was written. */
export interface SavedState {
  /** SHA-256 of the weights' file, hexadecimal. */
  readonly digest: string;
  readonly bytes: number;
}

export interface TrainingEngine {
  /** Token ids are below this. */
  readonly vocabSize: number;
  /** What `save` writes, about. */
  readonly stateBytes: number;
  /**
   * What the last bits of its results depend on beside the calls themselves, such as how many workers add up a gradient.
   * Two engines that name the same give the same bits; others may differ in rounding.
   */
  readonly arithmetic: string;
  /** Makes the model's first weights and an optimizer that has made no update. */
  initialise(): Promise<void>;
  /** Takes weights and optimizer from a folder that `save` wrote; without an optimizer there, it starts anew. */
  load(folder: string): Promise<void>;
  /** Updates the weights once. Where numbers are not finite, it fails and leaves the state as it was. */
  trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult>;
  /** Forgets what earlier updates taught the optimizer; the weights stay. For a phase with another loss. */
  resetOptimizer(): Promise<void>;
  /** Log-probabilities under the present weights, at a temperature (default 1). */
  logprobs(samples: readonly TrainingSample[], temperature?: number): Promise<SampleScores>;
  /**
   * Holds the weights of a folder that `save` or `saveWeights` wrote as the reference, beside those that are trained; what
   * is not trained is shared.
   */
  loadReference(folder: string): Promise<void>;
  /** Log-probabilities under the reference, which must be loaded. */
  referenceLogprobs(samples: readonly TrainingSample[], temperature?: number): Promise<SampleScores>;
  /** Writes all that `load` needs; syncing and renaming the folder is the caller's. */
  save(folder: string): Promise<SavedState>;
  /** Writes the weights as `save` does, bit by bit, and no optimizer: all that generation needs. */
  saveWeights(folder: string): Promise<SavedState>;
  /** Writes a Hugging Face folder, or a PEFT folder where adapters are trained, without the optimizer. */
  exportTo(folder: string): Promise<SavedState>;
  /** Frees the engine; calls that are still open fail. */
  close(): Promise<void>;
}
