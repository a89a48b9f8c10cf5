/**
 * Training computations: the graphs of losses, gradients of packed samples, optimizer and learning-rate schedules.
 */

export type { Microbatch, PackingLimits, TrainingSample } from "./batches/microbatch.ts";
export type { Objective, Pass, PlannedPasses, ScoredEntries, ScoringOptions } from "./batches/plan-passes.ts";
export { emptyScores, packingLimits, planScoring, planUpdate, takeScores } from "./batches/plan-passes.ts";
export { MicrobatchError, NonFiniteError, TrainingInputError } from "./errors.ts";
export type { LossAndGradients, RunnerOptions, SamplesBeside } from "./gradient-runner.ts";
export { GradientRunner } from "./gradient-runner.ts";
export type { TrainingExtent, TrainingMemory, TrainingPlan, WorkDivision } from "./graph/training-memory.ts";
export { isLargeModel, planTraining, predictTrainingMemory, ThreadSharing } from "./graph/training-memory.ts";
export type { AdamWOptions } from "./update/adamw.ts";
export { ADAMW_DEFAULTS, updateAdamW } from "./update/adamw.ts";
export { clipFactor } from "./update/gradient-norm.ts";
export type { DecayKind, ScheduleConfig } from "./update/schedule.ts";
export { learningRateAt } from "./update/schedule.ts";
export { UpdateThreads } from "./update/update-threads.ts";
