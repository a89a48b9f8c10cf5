/** Measures the peak memory of training: VmHWM of the trainer's process. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Random } from "@hone/core";
import { Quantization } from "@hone/rl";
import { peakBytes } from "../load/resident-memory.ts";
import {
  generateBatch,
  honeGenerator,
  honeTrainer,
  honeTraining,
  randomIds,
  trainBatch,
} from "../measure/engine-calls.ts";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import type { Comparison, Figures } from "./comparison.ts";
import { Contender } from "./contender.ts";
import type { MeasurePeers } from "./rows.ts";

const FULL = { rows: 4, tokens: 512 };
const QUICK = { rows: 1, tokens: 32 };
/** Prompts of generation. */
const GENERATED = { rows: 8, tokens: 128 };
const NEW_TOKENS = 16;
const GIBIBYTE = 2 ** 30;
const FULL_BAR_GIB = 5;
/** The trainer's memory limit, which is below the bar by the error of memory predictions. */
const TRAINER_LIMIT = 0.95 * FULL_BAR_GIB * 1_024;
/** Steps to make: the second one uses the optimizer's state and the memory arenas of the first. */
const UPDATES = 2;
/** Rank of the adapters on every projection. */
const LORA_RANK = "16";

export const measureMemory: MeasurePeers = async (bench) => {
  const { rows, tokens } = bench.isQuick ? QUICK : FULL;
  const state = await mkdtemp(path.join(tmpdir(), "hone-bench-memory-"));
  bench.say(`memory of full training on ${rows} x ${tokens} tokens`);
  const random = new Random(1);
  const samples = Array.from({ length: rows }, () => {
    const tokenIds = Array.from({ length: tokens }, () => random.nextInt(bench.work.vocabSize));
    const each = (value: number) => Array.from({ length: tokens - 1 }, () => value);
    return {
      tokenIds,
      lossMask: [0, ...each(1)],
      inputs: { behaviourLogprob: each(-1), advantage: each(1) },
      weights: each(1 / (rows * (tokens - 1))),
    };
  });
  try {
    const limits = ["--longest", String(tokens), "--memoryMib", String(TRAINER_LIMIT)];
    const full = await peakOf(await Contender.start(honeTrainer(bench.model, state, limits)), (program) =>
      trainBatch(program, samples),
    );
    bench.say(`memory of LoRA on ${rows} x ${tokens} tokens`);
    const work = [
      "--shape",
      "0.5b",
      "--lora",
      LORA_RANK,
      "--rows",
      String(rows),
      "--rowTokens",
      String(tokens),
    ];
    const lora = await peakOf(await Contender.start(honeTraining(work)), (program) => program.round());
    return {
      comparisons: [
        rowOf(
          `SmolLM2-135M, all weights, ${rows} x ${tokens} tokens: trainer's peak memory`,
          full,
          FULL_BAR_GIB,
        ),
        rowOf(`0.5B shape, LoRA, ${rows} x ${tokens} tokens: peak memory of training`, lora, 8),
      ],
      details: [],
    };
  } finally {
    await rm(state, { recursive: true, force: true });
  }
};

/** Peak memory of the generating engine in eight bits and in float32, after one batch. */
export const measureGenerationMemory: MeasurePeers = async (bench) => {
  const { rows, tokens } = bench.isQuick ? QUICK : GENERATED;
  const random = new Random(1);
  const prompts = Array.from({ length: rows }, () => randomIds(random, bench.work.vocabSize, tokens));
  const batch = { prompts, samples: 1, newTokens: NEW_TOKENS, seed: 1 };
  const peaks: Figures[] = [];
  for (const quantization of [bench.precision.hone, Quantization.none]) {
    bench.say(`memory of generation, quantization ${quantization}`);
    const generator = await Contender.start(honeGenerator(bench.model, quantization));
    peaks.push(await peakOf(generator, (program) => generateBatch(program, batch)));
  }
  return {
    comparisons: [
      {
        name: `SmolLM2-135M, ${rows} prompts of ${tokens}, ${NEW_TOKENS} new tokens each: peak memory of generation in eight bits`,
        unit: "GiB",
        better: "lower",
        hone: peaks[0]!,
        peer: { name: "Hone in float32", figures: peaks[1]! },
        target: { kind: "at least", bar: 2 },
      },
    ],
    details: [],
  };
};

async function peakOf(
  trainer: Contender,
  update: (program: MeasuredProgram) => Promise<unknown>,
): Promise<Figures> {
  await using _ended = trainer;
  for (let i = 0; i < UPDATES; i++) {
    await trainer.measure(async (program) => {
      await update(program);
      return 0;
    });
  }
  return trainer.figures([(peakBytes(trainer.pid) ?? Number.NaN) / GIBIBYTE]);
}

function rowOf(name: string, hone: Figures, bar: number): Comparison {
  return { name, unit: "GiB", better: "lower", hone, target: { kind: "at most", bar } };
}
