/**
 * Compares a whole GRPO step with TRL's: the same prompts, counts and lengths, and random rewards.
 *
 * S1: Hone's step is made by the engines of gateway and trainer, in separate processes as in the services: sampling, scoring,
 *     one update, writing and syncing the version, and loading it into the generating engine. It leaves out the bus, the agents,
 *     the judge, and the optimizer's file if that is not due. TRL keeps one copy of the weights and writes nothing.
 * S2: no answer ends early on either side: TRL forbids the end token, and Hone stops at no token.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Random } from "@hone/core";
import { loadTokenizer } from "@hone/tokenizer";
import {
  generateBatch,
  honeGenerator,
  honeTrainer,
  loadVersion,
  rewardAtRandom,
  type SampledBatch,
  saveVersion,
  trainBatch,
} from "../measure/engine-calls.ts";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import { measured } from "../report/report.ts";
import { Contender } from "./contender.ts";
import { type MeasurePeers, measureParts, productShare } from "./rows.ts";

const FULL = { prompts: 4, samples: 8, newTokens: 64 };
const QUICK = { prompts: 2, samples: 2, newTokens: 8 };
/** The same prompt as in bench/peers/grpo_trl.py. */
const PROMPT = "You are solving the FrozenLake puzzle. ".repeat(12);
const TASKS = 64;
const WARM_UP_ROUNDS = 1;

const PARTS = ["generate", "score", "train", "save", "load"] as const;
type PartName = (typeof PARTS)[number];
type StepShape = typeof FULL;

export const measureGrpo: MeasurePeers = async (bench) => {
  const shape = bench.isQuick ? QUICK : FULL;
  const { prompts, samples, newTokens } = shape;
  const quantization = bench.precision.hone;
  const name = `GRPO step: ${prompts} prompts x ${samples} completions x ${newTokens} tokens${bench.precision.title}`;
  bench.say(name);
  const tokenizer = await loadTokenizer(bench.model);
  const tasks = Array.from({ length: TASKS }, (_, task) => [...tokenizer.encode(PROMPT + task)]);
  const state = await mkdtemp(path.join(tmpdir(), "hone-bench-grpo-"));
  const times = new Map<PartName, number[]>(PARTS.map((part) => [part, []]));
  try {
    await using generator = await Contender.start(honeGenerator(bench.model, quantization));
    await using hone = await Contender.start(
      honeTrainer(bench.model, state, ["--quantization", quantization]),
    );
    await using trl = await Contender.startPeer("TRL", bench.peersFolder, "torch", [
      "grpo_trl.py",
      bench.model,
      ...[prompts, samples, newTokens].map(String),
      bench.precision.peers,
    ]);
    let step = 0;
    const makeStep = async (trainer: MeasuredProgram): Promise<number> => {
      step++;
      const drawn = Array.from({ length: prompts }, (_, i) => tasks[(step * prompts + i) % TASKS]!);
      let seconds: Record<PartName, number> | undefined;
      await generator.measure(async (engine) => {
        seconds = await honeStep(engine, trainer, { ...shape, prompts: drawn, version: step });
        return 0;
      });
      if (seconds === undefined) throw new Error(generator.reason);
      for (const part of PARTS) times.get(part)!.push(seconds[part]);
      return PARTS.reduce((sum, part) => sum + seconds![part], 0);
    };
    const { figures, product } = await measureParts(
      bench,
      [
        { contender: hone, measure: makeStep },
        {
          contender: trl,
          measure: async (program) => (await program.round<{ seconds: number }>()).seconds,
        },
      ],
      WARM_UP_ROUNDS,
    );
    const flops = flopsOf(bench.work, tasks[0]!.length, shape);
    const [own, theirs] = figures;
    const steps = own!.kind === "missing" ? own! : { ...own!, values: own!.values.map((each) => 1 / each) };
    return {
      comparisons: [
        {
          name,
          unit: "s",
          better: "lower",
          hone: own!,
          peer: { name: trl.name, figures: theirs! },
          target: { kind: "at least", bar: 2.5, aim: 3.5 },
          ...productShare(steps, product, flops),
        },
      ],
      details: [...times]
        .filter(([, values]) => values.length > WARM_UP_ROUNDS)
        .map(([part, values]) =>
          measured(
            `GRPO step, ${part}${bench.precision.title}`,
            "s",
            values.slice(WARM_UP_ROUNDS),
            MEANINGS[part],
            "lower",
          ),
        ),
    };
  } finally {
    await rm(state, { recursive: true, force: true });
  }
};

const MEANINGS: Readonly<Record<PartName, string>> = {
  generate: "all completions, prompts read once a group",
  score: "rewards at random, advantages, samples",
  train: "one update on all of them, AdamW included",
  save: "the version written and synced; the optimizer with every eighth one, as the trainer does",
  load: "read by the generating engine, which swaps to it",
};

interface StepOptions extends Omit<StepShape, "prompts"> {
  readonly prompts: readonly (readonly number[])[];
  readonly version: number;
}

/** S1. @returns seconds by part */
async function honeStep(
  generator: MeasuredProgram,
  trainer: MeasuredProgram,
  { prompts, samples, newTokens, version }: StepOptions,
): Promise<Record<PartName, number>> {
  let since = performance.now();
  const lap = () => {
    const before = since;
    since = performance.now();
    return (since - before) / 1_000;
  };
  const batch = { prompts, samples, newTokens, seed: version };
  const sampled = await generateBatch<SampledBatch>(generator, batch);
  const generate = lap();
  const scored = rewardAtRandom(batch, sampled, new Random(version));
  const score = lap();
  await trainBatch(trainer, scored);
  const train = lap();
  const saved = await saveVersion(trainer, version);
  const save = lap();
  await loadVersion(generator, saved);
  return { generate, score, train, save, load: lap() };
}

/** Operations of a step; a prompt is computed once per group, in sampling and in training. */
function flopsOf(
  {
    readToken,
    generatedToken,
    carriedToken,
    trainedToken,
  }: Record<"readToken" | "generatedToken" | "carriedToken" | "trainedToken", number>,
  promptTokens: number,
  { prompts, samples, newTokens }: StepShape,
): number {
  const sampled = prompts * samples * newTokens;
  return prompts * promptTokens * (readToken + carriedToken) + sampled * (generatedToken + trainedToken);
}
