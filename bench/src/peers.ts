/**
 * `npm run bench:peers`: compares Hone and its peers in training language models on this machine.
 *
 *   npm run bench:peers -- [--only training,prompts,groups,sessions,turns,grpo,memory,training-8bit,...] [--rounds 3] [--quick]
 *        [--json FILE]
 *
 * Rows compare float32 with float32; those that end with -8bit compare the fastest of both sides: eight bits, and bfloat16 where the
 * processor multiplies it. Prints one table with targets and the share of the machine's matrix-multiply rate that each row reaches, and writes it as
 * JSON. Peers are looked for in the folder that PEERS names (default ~/.cache/hone-peers): PyTorch, transformers and TRL in
 * `torch`, vLLM in `vllm`, SmolLM2-135M-Instruct in `smollm2`. A peer that is not installed has a row that says so. Figures
 * can be compared only within one sitting, while nothing else uses the machine.
 */

import { existsSync } from "node:fs";
import path from "node:path";
import { type BenchOptions, parseOptions } from "./options.ts";
import { type Comparison, formatComparisons, type JudgedComparison, judge } from "./peers/comparison.ts";
import { Contender, NOT_INSTALLED } from "./peers/contender.ts";
import { measureGeneration } from "./peers/generation.ts";
import { measureGrpo } from "./peers/grpo.ts";
import { measureGenerationMemory, measureMemory } from "./peers/memory.ts";
import { workOfFolder } from "./peers/model-work.ts";
import { BEST, FLOAT32, type Precision } from "./peers/precision.ts";
import type { MeasurePeers } from "./peers/rows.ts";
import { measureTraining } from "./peers/training.ts";
import { formatSection, measured, type Row } from "./report/report.ts";
import { holdSitting } from "./report/sitting.ts";
import { benchProgram } from "./repository.ts";

/** Rows that are measured with the same programs. */
interface Group {
  readonly names: readonly string[];
  readonly measure: MeasurePeers;
  readonly precision: Precision;
}

const GROUPS: readonly Group[] = [
  { names: ["training"], measure: measureTraining, precision: FLOAT32 },
  { names: ["training"], measure: measureTraining, precision: BEST },
  { names: ["prompts", "groups", "sessions", "turns"], measure: measureGeneration, precision: FLOAT32 },
  { names: ["prompts", "groups", "sessions"], measure: measureGeneration, precision: BEST },
  { names: ["grpo"], measure: measureGrpo, precision: FLOAT32 },
  { names: ["grpo"], measure: measureGrpo, precision: BEST },
  { names: ["memory"], measure: measureMemory, precision: FLOAT32 },
  { names: ["memory"], measure: measureGenerationMemory, precision: BEST },
];
const NAMES = GROUPS.flatMap(({ names, precision }) => names.map((name) => name + precision.suffix));
const DEFAULTS = { command: "npm run bench:peers", rounds: 3, jsonName: "bench-peers.json" };

const readOptions = () => parseOptions(process.argv.slice(2), NAMES, process.env, DEFAULTS);
await holdSitting(readOptions, async (options) => {
  const model = path.join(options.peersFolder, "smollm2");
  if (!existsSync(path.join(model, "config.json"))) {
    console.log(`${model}: ${NOT_INSTALLED}, so nothing was measured`);
    return { isQuick: options.isQuick, comparisons: [], details: [] };
  }
  const found = await measureAll(options, model);
  console.log(`\n${formatComparisons(found.comparisons).join("\n")}`);
  const section = { name: "details", title: "What stands behind them", rows: found.details };
  console.log(`\n${formatSection(section).join("\n")}`);
  return { isQuick: options.isQuick, ...found };
});

async function measureAll(
  options: BenchOptions,
  model: string,
): Promise<{ comparisons: readonly JudgedComparison[]; details: readonly Row[] }> {
  const args = [benchProgram("matrix-product.ts"), "--threads", "0"];
  await using product = await Contender.start({ name: "the matrix product", args });
  const say = (line: string) => console.error(`  measuring ${line}`);
  const bench = { ...options, say, model, work: workOfFolder(model), product };
  const speed = await product.measure(async (program) => (await program.round<{ gflops: number }>()).gflops);
  const details: Row[] = [
    measured(
      "matrix product",
      "GFLOP/s",
      [speed],
      "2048-cube of float32, all cores; measured between rounds too",
    ),
  ];
  const comparisons: Comparison[] = [];
  for (const { names, measure, precision } of GROUPS) {
    const wanted = names.filter((name) => options.only.includes(name + precision.suffix));
    if (wanted.length === 0) continue;
    const rows = await measure({ ...bench, precision }, wanted);
    comparisons.push(...rows.comparisons);
    details.push(...rows.details);
  }
  return { comparisons: comparisons.map(judge), details };
}
