/**
 * Measures the processor time of a decode step of the 135M shape, and the share of each operator.
 *
 *   node services/inference-gateway/bench/decode-step.ts [--sequences 32] [--context 160] [--new 1] [--steps 20]
 *        [--threads 2] [--groups 1] [--left] [--int8] [--again] [--profile]
 *
 * Each sequence computes --new tokens after --context known ones, and in the next step after those too, or with --again the same
 * ones again. With --groups 8, eight sequences each share their known tokens, but for the last page. Prints the median of the steps.
 * With --left the weights are on the left of their products, with --int8 they are quantized. With --profile it also sums
 * onnxruntime's own timing by operator, which makes the steps a little slower.
 */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { initialiseWeights, PAGE_ROWS, quantizeWeights, resolveModelSpec } from "@hone/nn";
import { exactEightBitType } from "@hone/tensor";
import { OnnxRunner } from "../src/embedded/onnx/onnx-runner.ts";

const { values } = parseArgs({
  options: {
    sequences: { type: "string", default: "32" },
    context: { type: "string", default: "160" },
    new: { type: "string", default: "1" },
    steps: { type: "string", default: "20" },
    groups: { type: "string", default: "1" },
    threads: { type: "string", default: "2" },
    left: { type: "boolean", default: false },
    int8: { type: "boolean", default: false },
    again: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
  },
});
const [sequences, context, count, steps] = [values.sequences, values.context, values.new, values.steps].map(
  Number,
) as [number, number, number, number];
const spec = resolveModelSpec({
  family: "llama",
  vocabSize: 49_152,
  hiddenSize: 576,
  numLayers: 30,
  numHeads: 9,
  numKeyValueHeads: 3,
  intermediateSize: 1_536,
  maxPositions: 2_048,
});
const folder = await mkdtemp(path.join(tmpdir(), "hone-bench-"));
const builtAt = performance.now();
const weights = initialiseWeights(spec, 1);
const eightBits = values.int8 ? await exactEightBitType() : undefined;
const madeAt = performance.now();
const given = eightBits === undefined ? weights : await quantizeWeights(spec, weights, eightBits);
const quantizedAt = performance.now();
const runner = await OnnxRunner.create(spec, given, {
  maxCacheBytes: 2 ** 31,
  maxSequences: sequences,
  intraOpThreads: Number(values.threads),
  isWeightLeft: values.left,
  eightBits,
  ...(values.profile && { profilePrefix: path.join(folder, "profile") }),
});
console.log(
  `weights ${(madeAt - builtAt).toFixed(0)} ms, quantizing ${(quantizedAt - madeAt).toFixed(0)} ms, session ${(performance.now() - quantizedAt).toFixed(0)} ms`,
);

const numPages = Math.ceil((context + steps * count) / PAGE_ROWS);
const sharedPages = Math.floor((context - 1) / PAGE_ROWS);
const contexts = Array.from({ length: sequences }, (_, s) => {
  const first = s - (s % Number(values.groups));
  return {
    tokenIds: Int32Array.from(
      { length: numPages * PAGE_ROWS },
      (_, i) => (s * 977 + i * 31) % spec.vocabSize,
    ),
    pages: Int32Array.from({ length: numPages }, (_, i) => 1 + (i < sharedPages ? first : s) * numPages + i),
  };
});
const costs: { ms: number; cpuMs: number }[] = [];
for (let step = 0; step < steps; step++) {
  const before = process.cpuUsage();
  const at = performance.now();
  await runner.run(
    contexts.map((c) => ({
      ...c,
      start: values.again ? context : context + step * count,
      count,
      wantsLogits: true,
    })),
  );
  const { user, system } = process.cpuUsage(before);
  costs.push({ ms: performance.now() - at, cpuMs: (user + system) / 1_000 });
}
const median = (of: (cost: (typeof costs)[number]) => number) =>
  costs.map(of).sort((a, b) => a - b)[Math.floor(steps / 2)]!;
const least = Math.min(...costs.map(({ cpuMs }) => cpuMs));
console.log(
  `${sequences} x ${count} behind ${context}: ${median(({ cpuMs }) => cpuMs).toFixed(1)} ms of CPU a step (least ${least.toFixed(1)}), ${median(({ ms }) => ms).toFixed(1)} ms`,
);
await runner.dispose();
if (values.profile) await printProfile();
await rm(folder, { recursive: true });

/** Wall time of the kernels by operator and shape of the result, in ms a step. */
async function printProfile(): Promise<void> {
  const [file] = await readdir(folder);
  const events = JSON.parse(await readFile(path.join(folder, file!), "utf8")) as {
    cat: string;
    name: string;
    dur: number;
    args: { op_name?: string; output_type_shape?: readonly Record<string, readonly number[]>[] };
  }[];
  const sums = new Map<string, { us: number; calls: number }>();
  for (const { cat, name, dur, args } of events) {
    if (cat !== "Node" || !name.endsWith("_kernel_time")) continue;
    const shape = Object.values(args.output_type_shape?.[0] ?? {})[0] ?? [];
    const key = `${args.op_name} ${shape.filter((size) => size > 1).join("x")}`;
    const sum = sums.get(key) ?? { us: 0, calls: 0 };
    sums.set(key, { us: sum.us + dur, calls: sum.calls + 1 });
  }
  const rows = [...sums].sort(([, a], [, b]) => b.us - a.us);
  const total = rows.reduce((sum, [, { us }]) => sum + us, 0);
  console.log(`kernels ${(total / 1_000 / steps).toFixed(1)} ms a step`);
  for (const [key, { us, calls }] of rows.slice(0, 40)) {
    console.log(
      `${(us / 1_000 / steps).toFixed(2).padStart(8)} ms  ${(calls / steps).toFixed(0).padStart(4)} x  ${key}`,
    );
  }
}
