/**
 * Measures generation and training in tokens per second, for the model of the first example and for the shape of SmolLM2-135M
 * with random weights.
 */

import { describeError } from "@hone/core";
import { measureInTurn } from "../measure/in-turn.ts";
import { MeasuredProgram } from "../measure/measured-program.ts";
import { measured, missing, type Row, type Section } from "../report/report.ts";
import { summarise } from "../report/summarise.ts";
import { benchProgram, REPOSITORY } from "../repository.ts";
import type { BenchSettings, Limits } from "../section.ts";
import { LimitName } from "./limits.ts";

/** Services are not imported: their engine is measured by their own program. */
const GENERATION = `${REPOSITORY}/services/inference-gateway/bench/engine.ts`;
const SMALL_GENERATION = ["--sessions", "256", "--turns", "10", "--prompt", "45", "--new", "4"];
const LARGE_GENERATION = [
  ...["--shape", "135m", "--sessions", "32", "--turns", "1", "--group", "1"],
  ...["--prompt", "128", "--new", "64", "--threads", "2"],
];
/** Rounds of the large shape, each of which takes half a minute. */
const MAX_LARGE_ROUNDS = 2;
const LARGE_PARAMETERS = 134.5e6;

interface Generated {
  readonly newTokens: number;
  readonly seconds: number;
}
interface Trained {
  readonly ms: number;
  readonly sampleTokens: number;
}

/** One engine and shape to measure. */
interface Engine {
  readonly name: string;
  readonly meaning: string;
  readonly args: readonly string[];
  readonly isLarge: boolean;
  readonly tokensPerSecond: (program: MeasuredProgram) => Promise<number>;
}

const generated = async (program: MeasuredProgram) => {
  const { newTokens, seconds } = await program.round<Generated>();
  return newTokens / seconds;
};
const trained = async (program: MeasuredProgram) => {
  const { sampleTokens, ms } = await program.round<Trained>();
  return (sampleTokens * 1_000) / ms;
};

const ENGINES: readonly Engine[] = [
  {
    name: "generation, example's model",
    meaning: "new tokens: 256 sessions of 10 turns, prompts of 45 shared by 8, 4 new and 20 observed a turn",
    args: [GENERATION, "--worker", "--json", ...SMALL_GENERATION],
    isLarge: false,
    tokensPerSecond: generated,
  },
  {
    name: "generation, 135M shape",
    meaning: "new tokens: 32 sessions of 128 prompt and 64 new, prompts included in the time",
    args: [GENERATION, "--worker", "--json", ...LARGE_GENERATION],
    isLarge: true,
    tokensPerSecond: generated,
  },
  {
    name: "training, example's model",
    meaning:
      "tokens of the samples: 4 groups of 8 rollouts a minibatch, packed as prefix tries, AdamW included",
    args: [benchProgram("training.ts"), "--json"],
    isLarge: false,
    tokensPerSecond: trained,
  },
  {
    name: "training, 135M shape",
    meaning: "tokens of 4 rows of 256, AdamW included",
    args: [benchProgram("training.ts"), "--json", "--shape", "135m", "--threads", "2", "--together"],
    isLarge: true,
    tokensPerSecond: trained,
  },
];

export async function measureEngines(settings: BenchSettings, limits: Limits): Promise<Section> {
  const rows: Row[] = [];
  for (const engine of ENGINES) {
    if (engine.isLarge && settings.isQuick) {
      rows.push(missing(engine.name, "tokens/s", "left out by --quick", engine.meaning));
      continue;
    }
    settings.say(engine.name);
    rows.push(...(await measureEngine(engine, settings, limits)));
  }
  return { name: "engines", title: "Engines", rows };
}

/** A shape that cannot run becomes a row with the reason, and the bench continues. */
async function measureEngine(engine: Engine, settings: BenchSettings, limits: Limits): Promise<Row[]> {
  const { name, meaning, args, isLarge, tokensPerSecond } = engine;
  const rounds = isLarge ? Math.min(settings.rounds, MAX_LARGE_ROUNDS) : settings.rounds;
  // The large shape needs no warm-up, which would cost little compared with its round.
  const warmUpRounds = isLarge && tokensPerSecond === generated ? 0 : 1;
  try {
    await using program = await MeasuredProgram.start({ name, args });
    const measure = { rate: () => tokensPerSecond(program) };
    const { rate } = await measureInTurn(measure, { ...settings, rounds }, warmUpRounds);
    const row = measured(name, "tokens/s", rate, meaning);
    return isLarge && tokensPerSecond === trained ? [row, ...productShare(rate, limits)] : [row];
  } catch (error) {
    return [missing(name, "tokens/s", `cannot run: ${describeError(error)}`, meaning)];
  }
}

/** The rate of 6 x parameters x tokens as a share of onnxruntime's matrix-product rate. */
function productShare(tokensPerSecond: readonly number[], limits: Limits): Row[] {
  const most = limits[LimitName.matrixAllCores];
  if (most === undefined) return [];
  const gflops = (6 * LARGE_PARAMETERS * summarise(tokensPerSecond).median) / 1e9;
  return [measured("  of the limit", "%", [(100 * gflops) / most], LimitName.matrixAllCores)];
}
