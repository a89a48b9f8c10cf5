/**
 * Training on tensors: losses as data, gradients of packed samples, optimizer, schedules, checkpoints.
 */
export type { AdamWOptions, AdamWState } from "./adamw.ts";
export { ADAMW_DEFAULTS, initialiseAdamW, updateAdamW } from "./adamw.ts";
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
export { layoutOfType, MODEL_FILE } from "./checkpoint-layout.ts";
export type { TensorPlace, WeightAllocator } from "./checkpoint-weights.ts";
export { digestOfWeights } from "./checkpoint-weights.ts";
export { ElementType } from "./element-types.ts";
export { CheckpointError, MicrobatchError, NonFiniteError, TrainingInputError } from "./errors.ts";
export { clipFactor } from "./gradient-norm.ts";
export type { LossAndGradients, RunnerOptions } from "./gradient-runner.ts";
export { GradientRunner } from "./gradient-runner.ts";
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
export type { MicrobatchJob, Objective, PlannedJobs, ScoredEntries } from "./microbatch-jobs.ts";
export { emptyScores, packingLimits, planScoring, planUpdate, takeScores } from "./microbatch-jobs.ts";
export type { Microbatch, PackingLimits, TrainingSample } from "./microbatches.ts";
export { loadOptimizer } from "./optimizer-file.ts";
export type { WeightFile, WeightWriter } from "./safetensors-header.ts";
export { encodeHeader } from "./safetensors-header.ts";
export type { DecayKind, ScheduleConfig } from "./schedule.ts";
export { learningRateAt } from "./schedule.ts";
export { allocateShared, shareWeights } from "./shared-weights.ts";
export type { TrainingExtent, TrainingMemory, TrainingPlan, WorkDivision } from "./training-memory.ts";
export { isLargeModel, planTraining, predictTrainingMemory, ThreadSharing } from "./training-memory.ts";
export { releaseValues, UpdateThreads } from "./update-threads.ts";
