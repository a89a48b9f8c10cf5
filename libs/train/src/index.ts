/**
 * Training on tensors: the graphs of losses, gradients of packed samples, optimizer and schedules.
 */
export type { AdamWOptions } from "./adamw.ts";
export { ADAMW_DEFAULTS, updateAdamW } from "./adamw.ts";
export { MicrobatchError, NonFiniteError, TrainingInputError } from "./errors.ts";
export { clipFactor } from "./gradient-norm.ts";
export type { LossAndGradients, RunnerOptions } from "./gradient-runner.ts";
export { GradientRunner } from "./gradient-runner.ts";
export type { MicrobatchJob, Objective, PlannedJobs, ScoredEntries } from "./microbatch-jobs.ts";
export { emptyScores, packingLimits, planScoring, planUpdate, takeScores } from "./microbatch-jobs.ts";
export type { Microbatch, PackingLimits, TrainingSample } from "./microbatches.ts";
export type { DecayKind, ScheduleConfig } from "./schedule.ts";
export { learningRateAt } from "./schedule.ts";
export type { TrainingExtent, TrainingMemory, TrainingPlan, WorkDivision } from "./training-memory.ts";
export { isLargeModel, planTraining, predictTrainingMemory, ThreadSharing } from "./training-memory.ts";
export { UpdateThreads } from "./update-threads.ts";
