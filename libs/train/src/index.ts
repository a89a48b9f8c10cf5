/**
 * Training on tensors: losses as data, gradients of packed samples, optimizer, schedules, checkpoints.
 */
export { CheckpointError, NonFiniteError, TrainingInputError } from "./errors.ts";
export type { LossAndGradients, Objective, RunnerOptions, ScoredEntries } from "./gradient-runner.ts";
export { GradientRunner } from "./gradient-runner.ts";
export type { LossConfig } from "./losses.ts";
export { checkLoss } from "./losses.ts";
export type { PackingLimits, TrainingSample } from "./microbatches.ts";
export type { SafeTensor, SafeTensorsFile } from "./safetensors.ts";
export { decodeSafeTensors, encodeSafeTensors } from "./safetensors.ts";
