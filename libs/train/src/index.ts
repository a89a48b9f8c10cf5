/**
 * Training on tensors: losses as data, gradients of packed samples, optimizer, schedules, checkpoints.
 */
export type { AdamWOptions, AdamWState } from "./adamw.ts";
export { ADAMW_DEFAULTS, initialiseAdamW, updateAdamW } from "./adamw.ts";
export type { CheckpointOrigin, Companions, LoadedModel, ModelState, SavedModel } from "./checkpoint.ts";
export { inspectModel, loadModel, saveCheckpoint } from "./checkpoint.ts";
export { layoutOfType, MODEL_FILE } from "./checkpoint-layout.ts";
export { digestOfWeights } from "./checkpoint-weights.ts";
export { ElementType } from "./element-types.ts";
export { CheckpointError, MicrobatchError, NonFiniteError, TrainingInputError } from "./errors.ts";
export { clipFactor, globalNorm } from "./gradient-norm.ts";
export type { LossAndGradients, Objective, RunnerOptions, ScoredEntries } from "./gradient-runner.ts";
export { GradientRunner } from "./gradient-runner.ts";
export type { LossConfig } from "./losses.ts";
export { checkLoss } from "./losses.ts";
export type { PackingLimits, TrainingSample } from "./microbatches.ts";
export { loadOptimizer } from "./optimizer-file.ts";
export type { DecayKind, ScheduleConfig } from "./schedule.ts";
export { learningRateAt } from "./schedule.ts";
export { allocateShared, shareWeights } from "./shared-weights.ts";
export type { TrainingExtent, TrainingMemory } from "./training-memory.ts";
export { chooseSharing, predictTrainingMemory, ThreadSharing } from "./training-memory.ts";
