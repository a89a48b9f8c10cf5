/** The gradients of a product in eight bits. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { exactEightBitType, Graph, GraphSession, gradientsFrom } from "@hone/tensor";
import { resolveModelSpec } from "../model/model-spec.ts";
import { allocateQuantized, WeightQuantizer } from "./quantized-weights.ts";
import { listFed, straightThroughLinear } from "./straight-through.ts";

const spec = resolveModelSpec({
  vocabSize: 24,
  hiddenSize: 48,
  numLayers: 1,
  numHeads: 3,
  intermediateSize: 64,
});
const NAME = "model.layers.0.mlp.gate_proj.weight";
const [OUT, IN, ROWS] = [64, 48, 40];
const random = new Random(5);
const fill = (count: number) => Float32Array.from({ length: count }, () => random.next() - 0.5);
const weight = fill(OUT * IN);
const type = await exactEightBitType();
const training = { type, hasGradients: true };

/** Gradients with respect to x and to the weights of x W^T, whose own gradient is given. */
async function differentiate(x: Float32Array, gradient: Float32Array) {
  const graph = new Graph("gradients");
  const read = graph.input("x", "float32", [1, ROWS, IN]);
  const float = graph.input("weight", "float32", [OUT, IN]);
  const product = straightThroughLinear(graph, spec, training, { [NAME]: float })(read, NAME);
  const seed = { tensor: product, gradient: graph.input("gradient", "float32", [1, ROWS, OUT]) };
  const [ofX, ofWeight] = gradientsFrom(graph, [seed], [read, float]);
  graph.output("x.gradient", ofX!);
  graph.output("weight.gradient", ofWeight!);
  const parameter = listFed(spec, training).find(({ source }) => source === NAME)!;
  const made = allocateQuantized([parameter], type, (bytes) => new ArrayBuffer(bytes));
  await using quantizer = new WeightQuantizer(made, [parameter]);
  await quantizer.take(NAME, weight);
  const session = await GraphSession.create(graph);
  const matrix = (name: string, shape: number[]) => ({ dtype: type, data: made[name]!, shape });
  const floats = (data: Float32Array, shape: number[]) => ({ dtype: "float32" as const, data, shape });
  const found = await session.run({
    x: floats(x, [1, ROWS, IN]),
    weight: floats(weight, [OUT, IN]),
    gradient: floats(gradient, [1, ROWS, OUT]),
    [parameter.values]: matrix(parameter.values, [IN, OUT]),
    [parameter.channels!]: matrix(parameter.channels!, [OUT, IN]),
    [parameter.scales]: floats(made[parameter.scales] as Float32Array, [OUT]),
  });
  await session.release();
  return {
    x: found["x.gradient"]!.data as Float32Array,
    weight: found["weight.gradient"]!.data as Float32Array,
  };
}

/** The same in float64, with the weights that are not rounded. */
function exact(x: Float32Array, gradient: Float32Array) {
  const ofX = new Float64Array(ROWS * IN);
  const ofWeight = new Float64Array(OUT * IN);
  for (let row = 0; row < ROWS; row++) {
    for (let out = 0; out < OUT; out++) {
      const slope = gradient[row * OUT + out]!;
      for (let k = 0; k < IN; k++) {
        ofX[row * IN + k]! += slope * weight[out * IN + k]!;
        ofWeight[out * IN + k]! += slope * x[row * IN + k]!;
      }
    }
  }
  return { x: ofX, weight: ofWeight };
}

/** Size of the difference, relative to the size of what is expected. */
function errorOf(found: ArrayLike<number>, expected: Float64Array): number {
  return Math.hypot(...expected.map((value, i) => value - found[i]!)) / Math.hypot(...expected);
}

describe("straightThroughLinear() with gradients in eight bits", () => {
  test("finds the gradients of inputs and weights to one percent", async () => {
    const [x, gradient] = [fill(ROWS * IN), fill(ROWS * OUT)];
    const [found, expected] = [await differentiate(x, gradient), exact(x, gradient)];
    for (const part of ["x", "weight"] as const) {
      const error = errorOf(found[part], expected[part]);
      assert.ok(error > 1e-4 && error < 0.015, `${part}: ${error}`);
    }
  });

  test("a channel with large values takes nothing from the weights of others", async () => {
    const [x, gradient] = [fill(ROWS * IN), fill(ROWS * OUT)];
    const others = (await differentiate(x, gradient)).weight;
    for (let row = 0; row < ROWS; row++) x[row * IN + 7]! *= 1_000;
    const found = (await differentiate(x, gradient)).weight;
    for (let i = 0; i < found.length; i++) if (i % IN !== 7) assert.equal(found[i], others[i]);
  });

  test("zeros give zeros, and a number that is not finite nothing finite", async () => {
    const zero = await differentiate(fill(ROWS * IN), new Float32Array(ROWS * OUT));
    for (const part of [zero.x, zero.weight]) assert.ok(part.every((value) => value === 0));
    const [x, gradient] = [fill(ROWS * IN), fill(ROWS * OUT)];
    gradient[3 * OUT + 9] = Number.POSITIVE_INFINITY;
    const found = await differentiate(x, gradient);
    assert.ok(found.x.slice(3 * IN, 4 * IN).every((value) => !Number.isFinite(value)));
    assert.ok(found.weight.slice(9 * IN, 10 * IN).every((value) => !Number.isFinite(value)));
  });
});
