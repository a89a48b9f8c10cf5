/**
 * Checkpoints: weights, adapters and optimizer state in the file formats of Hugging Face and PEFT.
 */
export type { AdapterState, InspectedAdapter } from "./adapter.ts";
export {
  inspectAdapter,
  isAdapterFolder,
  loadAdapter,
  locateAdapter,
  saveAdapter,
  saveAdapterWith,
} from "./adapter.ts";
export type { BaseReference } from "./adapter-config.ts";
export type { CheckpointOrigin, Companions, LoadedModel, ModelState, SavedModel } from "./checkpoint.ts";
export { inspectModel, loadModel, saveCheckpoint, saveCheckpointWith } from "./checkpoint.ts";
export { INDEX_FILE, layoutOfType, MODEL_FILE } from "./checkpoint-layout.ts";
export type { ReadOptions, TensorPlace, WeightAllocator } from "./checkpoint-weights.ts";
export { digestOfWeights } from "./checkpoint-weights.ts";
export { CheckpointError } from "./errors.ts";
export type { FindBase, LoadMergedOptions, MergedPlace } from "./merged-model.ts";
export {
  digestOfMerged,
  findBaseFolder,
  inspectMerged,
  loadMerged,
  locateMerged,
  mergeAdapters,
  requireBase,
} from "./merged-model.ts";
export { loadOptimizer } from "./optimizer-file.ts";
export { type AdamWState, initialiseAdamW } from "./optimizer-state.ts";
export { ElementType } from "./safetensors/element-types.ts";
export type { WeightFile, WeightWriter } from "./safetensors/header.ts";
export { encodeHeader } from "./safetensors/header.ts";
export { saveValueModel, valueSpecOf } from "./value-model.ts";
