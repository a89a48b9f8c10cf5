/**
 * The port to the engine of a critic: a model with a value head, its optimizer and the arithmetic of an update. As with a
 * {@link TrainingEngine}, calls are executed one after the other, and the same calls on the same state give the same bits.
 */

import type { LossTerm } from "@hone/rl";
import type { AdamWOptions, TrainingSample } from "@hone/train";
import type { SavedState } from "../step/training-engine.ts";

/** One optimizer update. */
export interface ValueMinibatch {
  /** In an order that does not depend on arrival, each with its old values and its returns. */
  readonly samples: readonly TrainingSample[];
  readonly term: LossTerm<"value">;
  readonly optimizer: AdamWOptions;
  /** Gradients of a larger global norm are scaled down to it. */
  readonly maxGradNorm: number;
}

/** The result of an update. */
export interface ValueResult {
  /** Per sample [N]: the value of each trained token before the update. */
  readonly values: readonly Float32Array[];
  readonly loss: number;
  /** Global norm of the gradient before clipping. */
  readonly gradNorm: number;
}

export interface CriticEngine {
  /** The approximate size of what `save` writes. */
  readonly stateBytes: number;
  /** Loads weights and optimizer from a folder that `save` wrote; where it has no optimizer, a fresh one is made. */
  load(folder: string): Promise<void>;
  /**
   * Writes the critic that a run begins with: the layers of its policy, or of a model of its own, under a head that expects
   * 0 of everything.
   * @param policy a folder that the engine of the policy wrote.
   */
  saveFirst(policy: string, folder: string): Promise<void>;
  /** Per sample [N]: what the critic expects to come from each trained token on. */
  values(samples: readonly TrainingSample[]): Promise<readonly Float32Array[]>;
  /** Updates the weights once. Where numbers are not finite, it fails and leaves the state as it was. */
  trainMinibatch(minibatch: ValueMinibatch): Promise<ValueResult>;
  /** Writes everything that `load` needs; the caller syncs and renames the folder. */
  save(folder: string): Promise<SavedState>;
  /** Closes the engine and frees its memory; calls that are still open fail. */
  close(): Promise<void>;
}
