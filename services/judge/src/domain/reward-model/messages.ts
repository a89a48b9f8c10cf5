/** Messages between a reward model's judge and its thread. */

export interface ToRewardWorker {
  readonly id: number;
  /** At least one. */
  readonly tokenIds: readonly number[];
}

export type FromRewardWorker =
  | { readonly kind: "ready" }
  /** The model cannot be loaded. */
  | { readonly kind: "unusable"; readonly reason: string }
  /** All outputs of the model for the conversation. */
  | { readonly kind: "outputs"; readonly id: number; readonly outputs: readonly number[] }
  | { readonly kind: "failed"; readonly id: number; readonly reason: string };
