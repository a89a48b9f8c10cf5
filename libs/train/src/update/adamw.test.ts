import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { initialiseAdamW } from "@hone/checkpoint";
import { initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { updateAdamW, updateParameter } from "./adamw.ts";
import { clipFactor } from "./gradient-norm.ts";

interface Reference {
  readonly options: { lr: number; betas: [number, number]; eps: number; weight_decay: number };
  readonly start: number[];
  readonly gradients: number[][];
  readonly afterStep: number[][];
}

const reference = JSON.parse(
  readFileSync(new URL("../../fixtures/adamw.json", import.meta.url), "utf8"),
) as Reference;

describe("updateParameter()", () => {
  test("makes the same steps as torch.optim.AdamW", () => {
    const { lr, betas, eps, weight_decay } = reference.options;
    const options = {
      learningRate: lr,
      beta1: betas[0],
      beta2: betas[1],
      epsilon: eps,
      weightDecay: weight_decay,
    };
    const parameter = Float32Array.from(reference.start);
    const moments = { m: new Float32Array(parameter.length), v: new Float32Array(parameter.length) };
    reference.gradients.forEach((gradient, i) => {
      updateParameter(parameter, Float32Array.from(gradient), moments, i + 1, options, 1);
      const error = Math.max(...reference.afterStep[i]!.map((value, at) => Math.abs(value - parameter[at]!)));
      // PyTorch computes in float32, so the last bits of a step differ.
      assert.ok(error < 3e-7, `step ${i + 1}: ${error}`);
    });
  });
});

describe("updateAdamW()", () => {
  test("applies weight decay to matrices but not to norms", () => {
    const spec = resolveModelSpec({ vocabSize: 4, hiddenSize: 8, numLayers: 1, numHeads: 2 });
    const weights = initialiseWeights(spec, 1);
    const before = Object.fromEntries(
      Object.entries(weights).map(([name, values]) => [name, values.slice()]),
    );
    const zeros = Object.fromEntries(
      Object.entries(weights).map(([name, values]) => [name, values.map(() => 0)]),
    );
    const options = { learningRate: 0.1, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.5 };
    const parameters = listParameters(spec);
    updateAdamW(parameters, weights, zeros, initialiseAdamW(parameters), options);
    for (const { name, kind } of listParameters(spec)) {
      const expected = kind === "norm" ? before[name]! : before[name]!.map((value) => value * 0.95);
      assert.deepEqual(weights[name], expected, name);
    }
  });
});

describe("clipFactor()", () => {
  test("scales a norm down to the limit", () => {
    assert.ok(Math.abs(clipFactor(5, 1) - 0.2) < 1e-6);
    assert.equal(clipFactor(0.5, 1), 1);
  });
});
