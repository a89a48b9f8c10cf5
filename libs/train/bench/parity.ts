/**
 * Loss and gradients of a checkpoint against PyTorch's, and an export of it, for `npm run parity`:
 *
 *   node libs/train/bench/parity.ts MODEL REFERENCE EXPORT
 */
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { GradientRunner, loadModel, saveCheckpoint } from "../src/index.ts";
import { readTensors } from "../src/testing-tensors.ts";

const MAX_LOSS_ERROR = 1e-5;
/** Of a parameter's gradient: |found - wanted| / |wanted|, Euclidean. */
const MAX_GRADIENT_ERROR = 1e-4;

const [modelFolder, referenceFolder, exportFolder] = process.argv.slice(2);
if (modelFolder === undefined || referenceFolder === undefined || exportFolder === undefined) {
  throw new Error("Cannot compare as three folders are needed: model, reference, export");
}
const { batch, loss } = JSON.parse(await readFile(path.join(referenceFolder, "reference.json"), "utf8")) as {
  batch: number[][];
  loss: number;
};
const model = await loadModel(modelFolder);
await saveCheckpoint(exportFolder, model);

const count = batch.reduce((sum, row) => sum + row.length - 1, 0);
const samples = batch.map((tokenIds) => ({
  tokenIds,
  lossMask: tokenIds.map((_, i) => (i === 0 ? 0 : 1)),
  weights: new Float32Array(tokenIds.length - 1).fill(1 / count),
}));
const threads = availableParallelism();
const runner = new GradientRunner(model.spec, { maxRowTokens: 128, maxMicrobatchTokens: 256, threads });
const found = await runner.differentiate(model.weights, samples, {
  loss: { kind: "cross_entropy" },
  entropyCoefficient: 0,
});
await runner.close();
const wanted = await readTensors(path.join(referenceFolder, "gradients.safetensors"));
let worst = { name: "", error: 0 };
for (const [name, gradient] of Object.entries(found.gradients)) {
  const error = relativeError(gradient, wanted.get(name)!);
  if (!(error <= worst.error)) worst = { name, error };
}
const lossError = Math.abs(found.loss - loss);
const numGradients = Object.keys(found.gradients).length;
console.log(
  `loss ${found.loss.toFixed(6)}: difference ${lossError.toExponential(1)} (at most ${MAX_LOSS_ERROR})`,
);
console.log(
  `${numGradients} gradients: largest relative difference ${worst.error.toExponential(1)}, of ${worst.name} (at most ${MAX_GRADIENT_ERROR})`,
);
process.exitCode = lossError < MAX_LOSS_ERROR && worst.error < MAX_GRADIENT_ERROR ? 0 : 1;

function relativeError(values: Float32Array, reference: Float32Array): number {
  let [difference, size] = [0, 0];
  for (let i = 0; i < reference.length; i++) {
    difference += (values[i]! - reference[i]!) ** 2;
    size += reference[i]! ** 2;
  }
  return Math.sqrt(difference / size);
}
