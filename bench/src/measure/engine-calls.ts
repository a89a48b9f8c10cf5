/**
 * Starts the engines of gateway and trainer as programs, each in its own thread as in the services.
 *
 * Calls and answers are defined in services/inference-gateway/bench/engine-calls.ts and services/trainer/bench/engine-calls.ts.
 */

import type { Random } from "@hone/core";
import { withLargeArrays } from "@hone/embedded";
import { Aggregation, groupRelative, lossWeights, Quantization } from "@hone/rl";
import { benchProgram, REPOSITORY } from "../repository.ts";
import type { MeasuredProgram, ProgramOptions } from "./measured-program.ts";

/** A batch to continue; the answer has `samples` sequences for each prompt, one after another. */
export interface GenerateBatch {
  readonly prompts: readonly (readonly number[])[];
  readonly samples: number;
  readonly newTokens: number;
  /** Conversations that the prompts continue, one for each. */
  readonly sessions?: readonly string[];
  readonly seed: number;
}

/** The result of a generating engine; peers give the same. */
export interface GeneratedBatch {
  readonly seconds: number;
  readonly ids: readonly (readonly number[])[];
}

/** Further results of Hone's engine. */
export interface SampledBatch extends GeneratedBatch {
  readonly logprobs: readonly (readonly number[])[];
}

/** A sequence to train on, with the inputs of a policy loss for its trained tokens. */
export interface TrainedSample {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly inputs: { readonly behaviourLogprob: readonly number[]; readonly advantage: readonly number[] };
  readonly weights: readonly number[];
}

/**
 * Starts the generating engine with the service's memory.
 * @param model a Hugging Face folder, served as version 0
 */
export function honeGenerator(model: string, quantization: Quantization = Quantization.none): ProgramOptions {
  const program = `${REPOSITORY}/services/inference-gateway/bench/engine-calls.ts`;
  const args = [program, "--model", model, "--quantization", quantization];
  return { name: "Hone", args, environment: withLargeArrays(process.env, "generation") };
}

/**
 * @param state folder for the versions that it saves
 * @param options of the program
 */
export function honeTrainer(model: string, state: string, options: readonly string[] = []): ProgramOptions {
  const program = `${REPOSITORY}/services/trainer/bench/engine-calls.ts`;
  const args = [program, "--model", model, "--state", state, ...options];
  return { name: "Hone", args, environment: withLargeArrays(process.env, "training") };
}

/**
 * Measures training steps in a program with the trainer's memory, with large operators on two threads.
 * @param options of bench/src/programs/training.ts
 */
export function honeTraining(options: readonly string[]): ProgramOptions {
  const args = [benchProgram("training.ts"), "--json", ...options, "--threads", "2", "--together"];
  return { name: "Hone", args, environment: withLargeArrays(process.env, "training") };
}

export function generateBatch<Answer extends GeneratedBatch>(
  generator: MeasuredProgram,
  batch: GenerateBatch,
): Promise<Answer> {
  return call(generator, { kind: "generate", ...batch });
}

/** Makes one update. */
export function trainBatch(trainer: MeasuredProgram, samples: readonly TrainedSample[]): Promise<unknown> {
  return call(trainer, { kind: "train", samples });
}

/** The folder of a version, as the service would publish it. */
export interface SavedVersion {
  readonly version: number;
  readonly folder: string;
  readonly digest: string;
}

/** Waits until the version is on disk. */
export async function saveVersion(trainer: MeasuredProgram, version: number): Promise<SavedVersion> {
  const { folder, digest } = await call<SavedVersion>(trainer, { kind: "save", version });
  return { version, folder, digest };
}

/** Waits until the engine generates with the version. */
export function loadVersion(generator: MeasuredProgram, saved: SavedVersion): Promise<unknown> {
  return call(generator, { kind: "load", ...saved });
}

/** The samples of a batch, with advantages of random rewards in each prompt's group. */
export function rewardAtRandom(
  { prompts, samples }: Pick<GenerateBatch, "prompts" | "samples">,
  { ids, logprobs }: SampledBatch,
  random: Random,
): TrainedSample[] {
  const weights = lossWeights(
    ids.map((completion) => completion.length),
    Aggregation.tokenMean,
    1,
  );
  return prompts.flatMap((prompt, group) => {
    const rewards = Array.from({ length: samples }, () => random.next());
    const advantages = groupRelative(rewards, { normalizeByStd: true, epsilon: 1e-6 });
    return advantages.map((advantage, sample) => {
      const at = group * samples + sample;
      const completion = ids[at]!;
      const each = (value: number) => completion.map(() => value);
      return {
        tokenIds: [...prompt, ...completion],
        lossMask: [...prompt.map(() => 0), ...each(1)],
        inputs: { behaviourLogprob: logprobs[at]!, advantage: each(advantage) },
        weights: each(weights[at]!),
      };
    });
  });
}

/** The first ids of a vocabulary are its special tokens. */
const FIRST_WORD = 16;

/** @returns a prompt without a special token. */
export function randomIds(random: Random, vocabSize: number, count: number): number[] {
  return Array.from({ length: count }, () => FIRST_WORD + random.nextInt(vocabSize - FIRST_WORD));
}

function call<Answer>(program: MeasuredProgram, body: object): Promise<Answer> {
  return program.round<Answer>(JSON.stringify(body));
}
