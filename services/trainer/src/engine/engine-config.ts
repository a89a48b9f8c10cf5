/** The configuration of a training engine. */
import { cpus } from "node:os";
import type { BaseReference, CheckpointOrigin, Companions, ElementType } from "@hone/checkpoint";
import { type LoraSpec, listTrained, type ModelSpec, parameterSize } from "@hone/nn";
import type { Quantization } from "@hone/rl";
import type { ThreadSharing } from "@hone/train";

/** Where the first weights come from. */
export type ModelStart =
  | { readonly kind: "fresh"; readonly seed: number }
  /** A Hugging Face folder, or a PEFT folder that is merged into `base`, or into the folder that it names. */
  | { readonly kind: "checkpoint"; readonly folder: string; readonly base?: string };

/** Adapters that are trained instead of the model, which must start from a checkpoint. */
export interface AdapterConfig {
  readonly lora: LoraSpec;
  /** Seed of the adapters' first values. */
  readonly seed: number;
  /** Path of the base that saved states name, relative to their folder. */
  readonly basePlace: string;
  /** The base model as exports name it. */
  readonly exportedBase: BaseReference;
  /** Element type of the adapters in exports; default float32. */
  readonly exportedType?: ElementType | undefined;
}

/** The configuration that every engine takes. */
export interface EngineConfig {
  /** The model that `initialise` makes; `load` takes the one of its folder, which must have the same shape. */
  readonly spec: ModelSpec;
  readonly start: ModelStart;
  /** Absent = the model itself is trained. */
  readonly adapters?: AdapterConfig;
  /** What exports are to be like; absent = as Hone writes them. */
  readonly origin?: CheckpointOrigin;
  /** Files that are written beside the weights, such as tokenizer.json; `load` adds those of its folder. */
  readonly companions: Companions;
  /** Tokens of a packed row; default {@link DEFAULT_ROW_TOKENS}. */
  readonly maxRowTokens?: number;
  /** Tokens of a forward-backward pass; default {@link DEFAULT_MICROBATCH_TOKENS}. */
  readonly maxMicrobatchTokens?: number;
}

export interface OnnxEngineConfig extends EngineConfig {
  /** Threads that compute; default: one per core. The result does not depend on it. */
  readonly threads?: number;
  /** What the threads share; default microbatches. The result does not depend on it. */
  readonly sharing?: ThreadSharing;
  /** Layers that are recomputed in the backward pass instead of being kept; default 0. The result does not depend on it. */
  readonly recomputedLayers?: number;
  /** How the products of the forward pass are computed. @default none: in float32 */
  readonly quantization?: Quantization;
  /** Whether the layers compute their gradients in eight bits, too. @default false */
  readonly hasQuantizedGradients?: boolean;
  /** What a training session takes before its first pass, see `TrainingPlan`; default 0. */
  readonly reservedBytes?: number;
}

/** What the bits of the embedded engine depend on: its kernels choose their instructions by the processor. */
export function embeddedArithmetic(): string {
  return `onnxruntime on ${cpus()[0]?.model.trim() ?? "an unknown processor"}`;
}

/** Long enough for a prompt with the branches of a group, short enough that attention stays a small part. */
export const DEFAULT_ROW_TOKENS = 128;
/** Bounds the memory of activations, which grows with it. */
export const DEFAULT_MICROBATCH_TOKENS = 1024;
/** Weights and the optimizer's two moments of each. */
const STATE_BYTES_PER_PARAMETER = 3 * 4;

/** The approximate size of a training state on the disk. */
export function stateBytesOf({ spec, adapters }: Pick<EngineConfig, "spec" | "adapters">): number {
  const trained = listTrained({ spec, lora: adapters?.lora });
  return trained.reduce((sum, parameter) => sum + parameterSize(parameter), 0) * STATE_BYTES_PER_PARAMETER;
}
