/**
 * The port to a training engine: the model, its optimizer and the arithmetic of an update.
 *
 * An engine is made for one model and knows nothing of runs, rollouts or rewards: losses are data. Calls are executed
 * one after the other in the order in which they were made; a call never blocks the caller's event loop. The same calls
 * on the same state give the same bits. A call ends when its work is done or when the engine is closed, which stops it at once.
 */
import type { LossName, LossTerm } from "@hone/rl";
import type { AdamWOptions, ScoringOptions, TrainingSample } from "@hone/train";

/** One optimizer update. */
export interface Minibatch {
  /** In an order that does not depend on arrival, because the order of summation determines the bits of the result. */
  readonly samples: readonly TrainingSample[];
  /** Terms of the loss, added up for each token; the samples carry the tensors that the terms read. */
  readonly terms: readonly LossTerm<LossName>[];
  /** Factor of the entropy bonus, which is averaged with the samples' weights; 0 for none. */
  readonly entropyCoefficient: number;
  /** Temperature that the samples were sampled at, above 0; log-probabilities refer to it. Default 1. */
  readonly temperature?: number;
  readonly optimizer: AdamWOptions;
  /** Gradients of a larger global norm are scaled down to it. */
  readonly maxGradNorm: number;
  /** What the same update imitates: the cross-entropy of these samples at temperature 1, by their weights, is added to the loss. */
  readonly supervised?: readonly TrainingSample[];
}

/** What the engine computed for samples. N = trained tokens of a sample, in order. */
export interface SampleScores {
  /** Per sample [N]: log-probability of each trained token. */
  readonly logprobs: readonly Float32Array[];
  /** Per sample [N]: entropy, in nats, of the distribution that each trained token comes from. */
  readonly entropies: readonly Float32Array[];
  /** Per sample [N]: sum over the vocabulary of p^2 of that distribution; 0 where it was not asked for. */
  readonly squares: readonly Float32Array[];
  /** Tokens that the samples would have taken as separate sequences. */
  readonly sampleTokenCount: number;
  /** Tokens that were computed, with shared prefixes counted once. */
  readonly packedTokenCount: number;
  readonly elapsedMs: number;
}

/** The result of an update; the scores are those before it. */
export interface MinibatchResult extends SampleScores {
  readonly loss: number;
  /** Per supervised sample [N]: log-probability of each trained token. */
  readonly supervisedLogprobs: readonly Float32Array[];
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
  /** The approximate size of what `save` writes. */
  readonly stateBytes: number;
  /**
   * What the last bits of the engine's results depend on beside the calls themselves, such as how many workers add up a
   * gradient. Two engines with the same value give the same bits; others may differ in rounding.
   */
  readonly arithmetic: string;
  /** Makes the model's first weights and a fresh optimizer. */
  initialise(): Promise<void>;
  /** Loads weights and optimizer from a folder that `save` wrote; where the folder has no optimizer, a fresh one is made. */
  load(folder: string): Promise<void>;
  /** Updates the weights once. Where numbers are not finite, it fails and leaves the state as it was. */
  trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult>;
  /** Resets the optimizer's moments and keeps the weights, for a phase with another loss. */
  resetOptimizer(): Promise<void>;
  /** Log-probabilities under the current weights. */
  logprobs(samples: readonly TrainingSample[], options?: ScoringOptions): Promise<SampleScores>;
  /**
   * Loads the weights of a folder that `save` or `saveWeights` wrote as the reference, beside those that are trained;
   * weights that are not trained are shared.
   */
  loadReference(folder: string): Promise<void>;
  /** Log-probabilities under the reference, which must be loaded. */
  referenceLogprobs(samples: readonly TrainingSample[], options?: ScoringOptions): Promise<SampleScores>;
  /** Writes everything that `load` needs; the caller syncs and renames the folder. */
  save(folder: string): Promise<SavedState>;
  /** Writes the same weights as `save`, bit for bit, without the optimizer: everything that generation needs. */
  saveWeights(folder: string): Promise<SavedState>;
  /** Writes a Hugging Face folder, or a PEFT folder where adapters are trained, without the optimizer. */
  exportTo(folder: string): Promise<SavedState>;
  /** Closes the engine and frees its memory; calls that are still open fail. */
  close(): Promise<void>;
}
