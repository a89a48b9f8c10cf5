/**
 * Compares losses, gradients and AdamW steps of a checkpoint with PyTorch's, and exports the checkpoint, for `npm run parity`:
 *
 *   node libs/train/bench/parity.ts MODEL REFERENCE EXPORT
 */

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { initialiseAdamW, loadAdapter, loadModel, saveCheckpoint } from "@hone/checkpoint";
import { readTensors } from "@hone/checkpoint/testing";
import { allocateShared, listParameters } from "@hone/nn";
import type { LossName } from "@hone/rl";
import { GradientRunner, type TrainingSample, UpdateThreads } from "../src/index.ts";

interface Reference {
  readonly batches: readonly {
    readonly name: string;
    readonly loss: LossName;
    readonly value: number;
    readonly samples: readonly TrainingSample[];
  }[];
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly adamw: {
    readonly lr: number;
    readonly betas: readonly [number, number];
    readonly eps: number;
    readonly weight_decay: number;
  };
  readonly gradientFactors: readonly number[];
}

const MAX_LOSS_ERROR = 1e-5;
/** Limit for a parameter's gradient and for the optimizer's change of a parameter: |found - wanted| / |wanted|, Euclidean. */
const MAX_GRADIENT_ERROR = 1e-4;
/** The batch of the reference whose gradients the optimizer gets. */
const OPTIMIZER_BATCH = "plain";
/** The batch of the reference whose gradients are those of adapters. */
const ADAPTED_BATCH = "lora";
/** Rows that are long enough for several samples and for whole trees. */
const LIMITS = { maxRowTokens: 256, maxMicrobatchTokens: 512 };

const [modelFolder, referenceFolder, exportFolder] = process.argv.slice(2);
if (modelFolder === undefined || referenceFolder === undefined || exportFolder === undefined) {
  throw new Error("Cannot compare as three folders are needed: model, reference, export");
}
const reference = JSON.parse(
  await readFile(path.join(referenceFolder, "reference.json"), "utf8"),
) as Reference;
const model = await loadModel(modelFolder, { allocate: allocateShared });
await saveCheckpoint(exportFolder, model);
let isPassed = true;
const adapter = await loadAdapter(path.join(referenceFolder, "adapter"), model.spec, allocateShared);
const limits = { ...LIMITS, threads: availableParallelism() };
for (const batch of reference.batches) await compareBatch(batch);
await compareOptimizer();
process.exitCode = isPassed ? 0 : 1;

async function compareBatch({ name, loss, value, samples }: Reference["batches"][number]): Promise<void> {
  const { clipLow, clipHigh } = reference;
  const isAdapted = name === ADAPTED_BATCH;
  const runner = new GradientRunner(model.spec, { ...limits, ...(isAdapted && { lora: adapter.lora }) });
  const weights = isAdapted ? { ...model.weights, ...adapter.weights } : model.weights;
  const found = await runner.differentiate(weights, samples, {
    terms: [{ name: loss, constants: loss === "ppo_clip" ? { clipLow, clipHigh } : {} }],
    entropyCoefficient: 0,
  });
  await runner.close();
  const lossError = Math.abs(found.loss - value);
  const worst = largestError(
    found.gradients,
    await readTensors(path.join(referenceFolder!, `gradients-${name}.safetensors`)),
  );
  report(
    `${name} batch, ${found.sampleTokenCount} tokens packed to ${found.packedTokenCount}: loss ${found.loss.toFixed(6)} ` +
      `differs by ${lossError.toExponential(1)} (at most ${MAX_LOSS_ERROR}), ${describe(worst)}`,
    lossError < MAX_LOSS_ERROR && worst.error < MAX_GRADIENT_ERROR,
  );
}

/** Uses PyTorch's gradients, so that only the optimizer differs. It changes the weights, so it must run last. */
async function compareOptimizer(): Promise<void> {
  const { lr, betas, eps, weight_decay: weightDecay } = reference.adamw;
  const gradients = Object.fromEntries(
    await readTensors(path.join(referenceFolder!, `gradients-${OPTIMIZER_BATCH}.safetensors`)),
  );
  const before = Object.fromEntries(
    Object.entries(model.weights).map(([name, values]) => [name, Float32Array.from(values)]),
  );
  const parameters = listParameters(model.spec);
  const state = initialiseAdamW(parameters);
  const options = { learningRate: lr, beta1: betas[0], beta2: betas[1], epsilon: eps, weightDecay };
  const updates = new UpdateThreads(availableParallelism());
  for (const factor of reference.gradientFactors) {
    await updates.update(parameters, model.weights, gradients, state, options, factor);
  }
  await updates.close();
  const wanted = await readTensors(path.join(referenceFolder!, "optimizer.safetensors"));
  for (const [name, values] of Object.entries(model.weights)) {
    const start = before[name]!;
    const after = wanted.get(name)!;
    for (let i = 0; i < start.length; i++) {
      values[i]! -= start[i]!;
      after[i]! -= start[i]!;
    }
  }
  const worst = largestError(model.weights, wanted);
  report(
    `${reference.gradientFactors.length} steps of AdamW: ${describe(worst)}`,
    worst.error < MAX_GRADIENT_ERROR,
  );
}

interface Worst {
  readonly name: string;
  readonly error: number;
  readonly count: number;
}

function largestError(
  found: Readonly<Record<string, Float32Array>>,
  wanted: ReadonlyMap<string, Float32Array>,
): Worst {
  let worst = { name: "", error: 0 };
  for (const [name, values] of Object.entries(found)) {
    const error = relativeError(values, wanted.get(name)!);
    if (!(error <= worst.error)) worst = { name, error };
  }
  return { ...worst, count: Object.keys(found).length };
}

function relativeError(values: Float32Array, wanted: Float32Array): number {
  let [difference, size] = [0, 0];
  for (let i = 0; i < wanted.length; i++) {
    difference += (values[i]! - wanted[i]!) ** 2;
    size += wanted[i]! ** 2;
  }
  return Math.sqrt(difference / size);
}

function describe({ name, error, count }: Worst): string {
  return `${count} parameters differ relatively by at most ${error.toExponential(1)}, ${name} (at most ${MAX_GRADIENT_ERROR})`;
}

function report(line: string, isGood: boolean): void {
  console.log(`  ${isGood ? "" : "FAILED: "}${line}`);
  isPassed &&= isGood;
}
