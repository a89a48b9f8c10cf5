/** What an embedded engine is made for. */
import { listParameters, type ModelSpec, parameterSize } from "@hone/nn";
import type { CheckpointOrigin, Companions, ThreadSharing } from "@hone/train";

/** Where the first weights come from. */
export type ModelStart =
  | { readonly kind: "fresh"; readonly seed: number }
  /** A Hugging Face folder. */
  | { readonly kind: "checkpoint"; readonly folder: string };

export interface OnnxEngineConfig {
  /** The model that `initialise` makes; `load` takes the one of its folder, which must have the same shape. */
  readonly spec: ModelSpec;
  readonly start: ModelStart;
  /** What exports are to be like; absent = as Hone writes them. */
  readonly origin?: CheckpointOrigin;
  /** Files that are written beside the weights, such as tokenizer.json; `load` adds those of its folder. */
  readonly companions: Companions;
  /** Threads that compute; default: one per core. The result does not depend on it. */
  readonly threads?: number;
  /** Tokens of a packed row; default {@link DEFAULT_ROW_TOKENS}. */
  readonly maxRowTokens?: number;
  /** What the threads share; default microbatches. The result does not depend on it. */
  readonly sharing?: ThreadSharing;
  /** Layers that are computed again on the way back instead of being kept; default 0. The result does not depend on it. */
  readonly recomputedLayers?: number;
  /** Tokens of a forward-backward pass; default {@link DEFAULT_MICROBATCH_TOKENS}. */
  readonly maxMicrobatchTokens?: number;
}

/** Long enough for a prompt with the branches of a group, short enough that attention stays a small part. */
export const DEFAULT_ROW_TOKENS = 128;
/** Bounds the memory of activations, which grows with it. */
export const DEFAULT_MICROBATCH_TOKENS = 1024;
/** Weights and the optimizer's two moments of each. */
const STATE_BYTES_PER_PARAMETER = 3 * 4;

/** What the state of training takes on the disk, about. */
export function stateBytesOf({ spec }: Pick<OnnxEngineConfig, "spec">): number {
  const parameters = listParameters(spec).reduce((sum, parameter) => sum + parameterSize(parameter), 0);
  return parameters * STATE_BYTES_PER_PARAMETER;
}
