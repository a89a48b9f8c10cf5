/**
 * Mixes generations, training steps and policy swaps, and samples the memory of both engines meanwhile.
 *
 * S1: one seed determines the sizes of batches, the lengths of prompts and answers, and which conversations continue.
 * S2: the work is spread evenly over the swaps, and every step trains on the latest samples.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { saveCheckpoint } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights } from "@hone/nn";
import { residentBytes } from "../load/resident-memory.ts";
import {
  type GenerateBatch,
  generateBatch,
  honeGenerator,
  honeTrainer,
  loadVersion,
  randomIds,
  rewardAtRandom,
  type SampledBatch,
  saveVersion,
  type TrainedSample,
  trainBatch,
} from "../measure/engine-calls.ts";
import { MeasuredProgram } from "../measure/measured-program.ts";
import type { SoakOptions } from "./soak-options.ts";

/** One sample of the memory. */
export interface SoakSample {
  /** Seconds since both engines had loaded their weights. */
  readonly seconds: number;
  readonly generations: number;
  readonly steps: number;
  readonly swaps: number;
  /** Resident sets of the processes. */
  readonly processes: Readonly<Record<"generation" | "training", number>>;
}

const ROUND_DEADLINE_MS = 900_000;
/** A conversation that is longer is not continued. */
const MAX_CONTEXT = 1_024;

/** @throws {ProgramError} when an engine dies. */
export async function soakEngines(
  options: SoakOptions,
  onSample: (sample: SoakSample) => void,
): Promise<SoakSample[]> {
  const folder = await mkdtemp(path.join(tmpdir(), "hone-soak-"));
  const samples: SoakSample[] = [];
  try {
    const model = path.join(folder, "model");
    const { spec } = options;
    await saveCheckpoint(model, { spec, weights: initialiseWeights(spec, 1), companions: {} });
    const start = (program: Parameters<typeof MeasuredProgram.start>[0]) =>
      MeasuredProgram.start({ ...program, roundDeadlineMs: ROUND_DEADLINE_MS });
    await using generator = await start(honeGenerator(model));
    await using trainer = await start(honeTrainer(model, folder));
    const done = { generations: 0, steps: 0, swaps: 0 };
    const beganAt = performance.now();
    const look = setInterval(() => {
      const processes = {
        generation: residentBytes(generator.pid) ?? 0,
        training: residentBytes(trainer.pid) ?? 0,
      };
      const sample = { seconds: (performance.now() - beganAt) / 1_000, ...done, processes };
      samples.push(sample);
      onSample(sample);
    }, options.intervalMs);
    try {
      const work = new SoakWork(options);
      while (done.swaps < options.swaps) {
        const share = (done.swaps + 1) / options.swaps; // S2
        while (done.generations < share * options.generations) {
          const batch = work.nextBatch(options.generations - done.generations);
          work.take(batch, await generateBatch<SampledBatch>(generator, batch));
          done.generations += batch.prompts.length * batch.samples;
        }
        while (done.steps < share * options.steps) {
          await trainBatch(trainer, work.nextStep());
          done.steps++;
        }
        await loadVersion(generator, await saveVersion(trainer, done.swaps + 1));
        done.swaps++;
      }
    } finally {
      clearInterval(look);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return samples;
}

/** Chooses the next work (S1). */
class SoakWork {
  readonly #options: SoakOptions;
  readonly #random = new Random(1);
  #batches = 0;
  /** Conversations that the next batch may continue. */
  #open: { readonly names: readonly string[]; readonly contexts: readonly (readonly number[])[] } | undefined;
  #trained: readonly TrainedSample[] = [];

  constructor(options: SoakOptions) {
    this.#options = options;
  }

  /** @param left most generations to make */
  nextBatch(left: number): GenerateBatch {
    const { maxBatch, maxPrompt, maxNew, spec } = this.#options;
    const seed = 1_000 * ++this.#batches;
    const newTokens = this.#upTo(maxNew);
    const most = Math.min(maxBatch, left);
    const open = this.#open;
    if (open !== undefined && this.#random.next() < 0.5 && open.names.length <= most) {
      return { prompts: open.contexts, sessions: open.names, samples: 1, newTokens, seed };
    }
    const size = this.#upTo(most);
    const samples = this.#random.next() < 0.5 ? 1 : Math.min(size, this.#upTo(8));
    const prompts = Array.from({ length: Math.floor(size / samples) }, () =>
      randomIds(this.#random, spec.vocabSize, this.#upTo(maxPrompt)),
    );
    const sessions = prompts.map((_, i) => `${seed}-${i}`);
    return { prompts, samples, newTokens, seed, ...(samples === 1 ? { sessions } : {}) };
  }

  take(batch: GenerateBatch, sampled: SampledBatch): void {
    this.#trained = rewardAtRandom(batch, sampled, this.#random);
    if (batch.sessions === undefined) return;
    const { maxPrompt, spec } = this.#options;
    const contexts = batch.prompts.map((prompt, i) => [
      ...prompt,
      ...sampled.ids[i]!,
      ...randomIds(this.#random, spec.vocabSize, this.#upTo(maxPrompt)),
    ]);
    const areShort = contexts.every((context) => context.length <= MAX_CONTEXT);
    this.#open = areShort ? { names: batch.sessions, contexts } : undefined;
  }

  nextStep(): readonly TrainedSample[] {
    const { stepSamples } = this.#options;
    return Array.from({ length: stepSamples }, (_, i) => this.#trained[i % this.#trained.length]!);
  }

  #upTo(most: number): number {
    return 1 + this.#random.nextInt(most);
  }
}
